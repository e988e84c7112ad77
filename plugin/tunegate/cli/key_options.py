"""Options that replace keys of the configuration, made from the declarations of these keys."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

from tunegate.cli.option import Option
from tunegate.config_key import DeclaredKey, expected, keys_of


class KeyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A group of options of one section: those of its keys that have a flag. `given` has the
    values by key: `budget.minutes`."""

    TITLE: ClassVar[str]
    """That of the group, and the name of the section."""
    SECTION: ClassVar[type[msgspec.Struct]]

    given: Mapping[str, object] = {}


def options_of(group: type[KeyOptions]) -> Iterator[tuple[str, Option]]:
    """The options of a group by the keys that they replace."""
    for declared in keys_of(group.SECTION, group.TITLE):
        if declared.key.flag:
            yield declared.place, _option(declared)


def _option(declared: DeclaredKey) -> Option:
    key, kind = declared.key, inspect.type_info(declared.kind)
    choices = tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()
    return Option(
        key.help,
        "" if choices else key.metavar,
        str if choices else _reader(declared, kind),
        choices=choices,
        flags=(key.flag,),
    )


def _reader(declared: DeclaredKey, kind: inspect.Type) -> Callable[[str], object]:
    """Reads a text as it is, and a number within the bounds of its key."""
    words = expected(kind, declared.key.unit)
    if words == "a text":
        return str

    def read(text: str) -> Any:  # noqa: ANN401  # as the key declares it
        try:
            value = msgspec.convert(float(text), declared.kind, strict=False)
        except ValueError:
            value = None
        if value is None or not math.isfinite(value):
            raise argparse.ArgumentTypeError(f'"{text}" is not {words}, without a unit')
        return value

    return read
