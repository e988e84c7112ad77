"""Turns a value that `tunegate.yaml` cannot have into a line for its author."""

import difflib
import re
import textwrap
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from tunegate.config import Config
from tunegate.config_key import all_keys, describe_type, key_at

_NEARLY_SAME = 0.8
"""The likeness at which an unknown key is taken for one of another section: `thread` is like
`threads`, and `providers` is not like `profiles`."""
_POWER = re.compile(r"([-+]?\d+)(\.\d*)?e([-+]?)(\d+)", re.IGNORECASE)


class KeyProblem(NamedTuple):
    """A wrong key and its line. An empty key is the whole file."""

    key: str
    text: str


def problem_of(
    error: msgspec.ValidationError, content: Any, kind: type[msgspec.Struct] = Config
) -> KeyProblem:
    """Returns one line: where the content is wrong, how, and what belongs there. `kind` is the type
    that it was read as."""
    message, _, where = str(error).partition(" - at ")
    if where.startswith("`key`"):
        key = _dotted_path(where)
        return KeyProblem(key, _bare_key(key, content, kind))
    keys = _pointed_at(content, _dotted_path(where), kind)
    path, value = _path(keys), _at(content, keys)
    unknown = re.fullmatch(r"Object contains unknown field `(.+)`", message, re.DOTALL)
    if unknown is not None:
        return KeyProblem(
            key_place(path, unknown[1]), _unknown_key_text(unknown[1], path, kind, keys)
        )
    missing = re.fullmatch(r"Object missing required field `(.+)`", message)
    if missing is not None:
        key = key_place(path, missing[1])
        return KeyProblem(
            key, f"{key} is missing. Add it{_description(kind, [*keys, missing[1]])}."
        )
    if isinstance(error.__cause__, ValueError):  # a section's own rule says it whole
        return KeyProblem(path, f"{path or 'the file'}: {message}.")
    declaration = key_at(kind, keys)
    if declaration is None:
        return KeyProblem(path, f"{path or 'the file'}: {message}.")
    unit = declaration.key.unit if declaration.key else ""
    return KeyProblem(path, value_problem(declaration.kind, path, value, unit))


def _bare_key(place: str, content: Any, kind: type[msgspec.Struct]) -> str:
    """Returns the line for a key that YAML reads as something other than text."""
    keys = _pointed_at(content, place, kind)
    path, inside = _path(keys), _at(content, keys)
    bare = [key for key in inside if not isinstance(key, str)] if isinstance(inside, dict) else []
    key_text = f"key {_show_value(bare[0])}" if bare else "a key"
    return f"{path or 'the file'}: {key_text} is not text. Put it in quotes."


def _description(kind: type[msgspec.Struct], keys: Sequence[str | int]) -> str:
    """Returns the key's type and meaning, '' for one without a declaration."""
    found = key_at(kind, keys)
    if found is None or found.key is None:
        return ""
    return f", {describe_type(found.kind, found.key.unit)}: {found.key.help}"


def value_problem(kind: inspect.Type, path: str, value: Any, unit: str = "") -> str:
    """Returns the line for a value of another type or out of bounds."""
    words, place = describe_type(kind, unit), path or "the file"
    if isinstance(value, str):
        if "number" in words and re.fullmatch(r"[-+]?0[0-9_]{1,30}", value):
            return f"{place}: some read {value} as octal. Write it without the zero in front."
        if unit and not _POWER.fullmatch(value):
            number = re.sub(r" [<>].*", "", words)
            return f'{place} must be {number} without a unit, not "{value}".'
        if isinstance(kind, inspect.LiteralType):
            return f"{place} is {words}, not {_show_value(value)}."
    return f"{place}: expected {words}, not {_show_value(value)}.{_hint(words, path, value)}"


def _dotted_path(where: str) -> str:
    """Returns the place `$.gate.margin` as the file's author writes it."""
    return where.removeprefix("`key` in ").strip("`").removeprefix("$").removeprefix(".")


def _pointed_at(content: Any, path: str, kind: type[msgspec.Struct]) -> list[str | int]:
    """Returns the path step by step. msgspec writes `[...]` for any key of a mapping; this names
    the key."""
    keys: list[str | int] = []
    for step in re.findall(r"\[\.\.\.\]|\[\d+\]|[^.\[\]]+", path):
        value = _at(content, keys)
        if step == "[...]":
            wrong = (
                name
                for name in value
                if _is_refused(_with(content, keys, {name: value[name]}), kind)
            )
            keys.append(next(wrong, ""))
        else:
            keys.append(int(step[1:-1]) if step.startswith("[") else step)
    return keys


def _at(content: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return None
    return content


def _with(content: Any, keys: Sequence[str | int], value: Any) -> Any:
    """Returns the content with another value at one place."""
    if not keys:
        return value
    key, *rest = keys
    copy = content.copy()
    copy[key] = _with(content[key], rest, value)
    return copy


def _is_refused(content: Any, kind: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(content, kind)
    except msgspec.ValidationError:
        return True
    return False


def _path(keys: Sequence[str | int]) -> str:
    steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(steps).removeprefix(".")


def _unknown_key_text(
    key: str, path: str, kind: type[msgspec.Struct], keys: Sequence[str | int]
) -> str:
    """Returns the line for an unknown key. Keys of its own section are suggested first, then nearly
    the same key of any other."""
    place = key_place(path, key)
    declaration = key_at(kind, keys)
    section = declaration.section if declaration and declaration.section else kind
    likely_key = meant_key(key, [field.encode_name for field in msgspec.structs.fields(section)])
    if not likely_key:
        elsewhere = _places(kind)
        near = difflib.get_close_matches(key, sorted(elsewhere), n=1, cutoff=_NEARLY_SAME)
        likely_key = elsewhere[near[0]] if near else ""
    return unknown_key(place, likely_key)


def _places(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Returns each key with its place. A key of several sections has the one with the fewest steps,
    then the first."""
    places: dict[str, str] = {}
    for place in sorted((key.place for key in all_keys(kind)), key=lambda each: each.count(".")):
        places.setdefault(place.rpartition(".")[2], place)
    return places


def meant_key(word: str, own: Collection[str]) -> str:
    """Returns the key that contains the word or resembles it, '' if none does."""
    same_word = [name for name in own if word in name.split("-")]
    near = same_word or difflib.get_close_matches(word, own, n=1)
    return near[0] if near else ""


def unknown_key(place: str, likely_key: str) -> str:
    """Returns the line for a key that nothing reads. `likely_key` is '' where none is near."""
    hint = f"Did you mean {likely_key}?" if likely_key else "Remove it."
    return f"unknown key {place}. {hint}"


def _show_value(value: Any) -> str:
    """Returns a value as text of one line, cut at its length."""
    match value:
        case None:
            return "nothing"
        case str():
            text = msgspec.json.encode(value).decode()
        case bool():
            text = str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            text = str(value)
    return textwrap.shorten(text, 60, placeholder="…")


def _hint(words: str, path: str, value: Any) -> str:
    if path.endswith(".accuracy") and isinstance(value, int | float):
        return f" Write {{max-error: {value:g}}}, or what else the budget is."
    power = _POWER.fullmatch(value) if isinstance(value, str) else None
    if power is not None:
        whole, part, sign, exponent = power.groups()
        return f" YAML wants a point and a sign: {whole}{part or '.0'}e{sign or '+'}{exponent}."
    is_bare = isinstance(value, int | float)
    if words == "a text" and is_bare:
        return " Put it in quotes."
    is_nameless = path.endswith(".profiles") and isinstance(value, list)
    return " Give each profile a name." if is_nameless else ""


def key_place(path: str, key: str) -> str:
    """Returns the place of a key in the section at that path."""
    return f"{path}.{key}" if path else key
