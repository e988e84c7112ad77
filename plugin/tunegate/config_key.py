"""The declaration of a key of `tunegate.yaml` beside its type and bounds, and how it is read.

A key is declared once, in `config.py`. From there come the merge of base's and head's values
(`review/rules.py`), the messages for wrong values (`review/config_problems.py`), the options
(`cli/option.py`), what they replace (`settings.py`), the check of the Action's inputs, the
table in `docs/configuration.md` and the descriptions of the JSON Schema.
"""

import math
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

Strictness = Callable[[Any], float]
"""A larger number is stricter."""


def smaller(value: float | None) -> float:
    """Smaller is stricter. None is no limit."""
    return -math.inf if value is None else -value


def larger(value: float | None) -> float:
    """Larger is stricter. None is no limit."""
    return -math.inf if value is None else value


def rarer(share: float) -> float:
    """A smaller share to look for is stricter. 0 looks for nothing."""
    return -share if share else -math.inf


def later(*values: str) -> Strictness:
    """Returns the order of the values, from the loosest to the strictest."""
    return values.index


class Key(msgspec.Struct, frozen=True):
    """The rest of a key's declaration, as an annotation of its field. `meaning` is Markdown for the
    documentation; its first sentence is the option's help. `unit` is what a number is in. Without
    `stricter` the base's value counts, whatever the head says; with `may_fill` the head's counts if
    the base has none. `default` is shown if the value itself says too little. `flag` is the option
    that replaces the key, with its `metavar`; `also` names a second key of the section that the
    option replaces. `is_input`: the Action has an input of the option's name."""

    meaning: str
    unit: str = ""
    stricter: Strictness | None = None
    may_fill: bool = False
    default: str = ""
    flag: str = ""
    metavar: str = "N"
    also: str = ""
    is_input: bool = False

    @property
    def help(self) -> str:
        """The first sentence of the meaning, in plain text."""
        return strip_markdown(self.meaning).partition(". ")[0]


class DeclaredKey(NamedTuple):
    """A key with its place, such as `targets[].cpu`. `kind` is its declared type."""

    place: str
    field: str
    kind: Any
    default: Any
    key: Key


def strip_markdown(markdown: str) -> str:
    """Returns the text without links and code marks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").strip()


def keys_of(section: type[msgspec.Struct], place: str = "") -> Iterator[DeclaredKey]:
    """Yields the keys of one section, without those of nested sections."""
    for field in msgspec.structs.fields(section):
        key = _key_of(field.type)
        if key is not None:
            path = f"{place}.{field.encode_name}" if place else field.encode_name
            default = field.default
            if field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            yield DeclaredKey(path, field.name, field.type, default, key)


def all_keys(section: type[msgspec.Struct]) -> Iterator[DeclaredKey]:
    """Yields the keys of a section, each followed by those of the section that it holds. A section
    in several places is visited at the first one."""
    yield from _all_keys(section, "", set())


def _all_keys(
    section: type[msgspec.Struct], place: str, sections: set[type[msgspec.Struct]]
) -> Iterator[DeclaredKey]:
    for key in keys_of(section, place):
        yield key
        inside = _section_in(inspect.type_info(key.kind), key.place)
        if inside is not None and inside[0] not in sections:
            sections.add(inside[0])
            yield from _all_keys(*inside, sections)


class KeyAt(NamedTuple):
    """The declaration at a path of a file: the type of the value, its key, and the section if the
    value is one."""

    kind: inspect.Type
    key: Key | None
    section: type[msgspec.Struct] | None


def key_at(root: type[msgspec.Struct], path: Sequence[str | int]) -> KeyAt | None:
    """Returns None for a path that nothing is declared at."""
    return _walk(inspect.type_info(root), tuple(path), None)


def describe_type(kind: inspect.Type, unit: str = "") -> str:
    """Returns the values of a type in words: "a number of seconds > 0"."""
    words = "a mapping"
    match _bare(kind):
        case inspect.BoolType():
            words = "true or false"
        case inspect.IntType() as number:
            words = f"a whole number{_of(unit)}{_bounds(number)}"
        case inspect.FloatType() as number:
            words = f"a number{_of(unit)}{_bounds(number)}"
        case inspect.StrType(pattern=None):
            words = "a text"
        case inspect.StrType(pattern=pattern):
            text = str(pattern).replace(WHOLE, "$")
            words = _PATTERNS.get(str(pattern), f"a text like {text}")
        case inspect.DateType():
            words = "a date as year-month-day"
        case inspect.LiteralType(values=values):
            words = _either(map(str, values))
        case inspect.VarTupleType(min_length=least) | inspect.ListType(min_length=least):
            words = "a list of at least one" if least else "a list"
        case inspect.UnionType(types=types):
            # A number may be written as an integer, which needs no words.
            some = [each for each in types if not isinstance(each, inspect.NoneType)]
            if any(isinstance(_bare(each), inspect.FloatType) for each in some):
                some = [each for each in some if not isinstance(_bare(each), inspect.IntType)]
            words = _either(dict.fromkeys(_form(each, unit) for each in some))
        case _:
            pass
    return words


WHOLE = r"$(?!\n)"
"""The end of a text, for Python and JSON Schema: Python's `$` also fits before a line break."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}" + WHOLE
URL_PATTERN = r"^https?://[^\s]+" + WHOLE
_PATTERNS = {
    NAME_PATTERN: "up to 100 letters, digits, dots, dashes and underscores",
    URL_PATTERN: "an https:// or http:// address",
}


def _key_of(kind: object) -> Key | None:
    return next(
        (argument for argument in typing.get_args(kind)[1:] if isinstance(argument, Key)), None
    )


def _bare(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _section_in(kind: inspect.Type, place: str) -> tuple[type[msgspec.Struct], str] | None:
    """Returns the section that a value is, may be, or has in a list or mapping."""
    match _bare(kind):
        case inspect.StructType(cls=section):
            return section, place
        case inspect.VarTupleType(item_type=item):
            return _section_in(item, f"{place}[]")
        case inspect.DictType(value_type=value):
            return _section_in(value, f"{place}.<name>")
        case inspect.UnionType(types=types):
            return next(filter(None, (_section_in(each, place) for each in types)), None)
        case _:
            return None


def _walk(kind: inspect.Type, path: tuple[str | int, ...], key: Key | None) -> KeyAt | None:
    kind = _bare(kind)
    if isinstance(kind, inspect.UnionType) and path:
        return next(filter(None, (_walk(each, path, key) for each in kind.types)), None)
    if not path:
        inner = _section_in(kind, "")
        return KeyAt(kind, key, inner[0] if inner and not inner[1] else None)
    step, rest = path[0], path[1:]
    inside: inspect.Type | None = None
    match kind:
        case inspect.StructType(cls=section, fields=fields):
            inside = next((field.type for field in fields if field.encode_name == step), None)
            keys = {each.place: each.key for each in keys_of(section)}
            key = keys.get(str(step))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            inside = item if isinstance(step, int) else None
        case inspect.DictType(value_type=value):
            inside = value
        case _:
            pass
    return None if inside is None else _walk(inside, rest, key)


def _form(kind: inspect.Type, unit: str) -> str:
    """Returns one of several forms in words. A literal word stands out."""
    words = describe_type(kind, unit)
    return f"`{words}`" if isinstance(kind, inspect.LiteralType) else words


def _bounds(number: inspect.IntType | inspect.FloatType) -> str:
    limits = ((">", number.gt), (">=", number.ge), ("<", number.lt), ("<=", number.le))
    bounds = [f"{sign} {limit:g}" for sign, limit in limits if limit is not None]
    return f" {' and '.join(bounds)}" if bounds else ""


def _of(unit: str) -> str:
    return f" of {unit}" if unit else ""


def _either(words: typing.Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
