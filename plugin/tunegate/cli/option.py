"""Declarations of options and arguments, as annotations on the fields of an options struct."""

import argparse
import calendar
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec
from msgspec import inspect

from tunegate.config_key import DeclaredKey, describe_type, keys_of


class Option(msgspec.Struct, frozen=True):
    """One option, as an annotation of the field that holds its value.

    A `bool` field is a switch. Empty `flags` mean the field's name. `instead_of` names a field that
    cannot be given together with it.
    """

    help: str
    metavar: str = ""
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    instead_of: str = ""
    is_repeated: bool = False


class Argument(msgspec.Struct, frozen=True):
    """A value without an option name. A `count` other than 1 fills a tuple; 0 takes any number."""

    help: str
    metavar: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    count: int = 1


# Parsers of values on the command line, which reject others in words.

_SEED_BITS = 64
_MAX_DIGITS = 40
"""More than any number here needs, and few enough for Python to read and a message to show."""
_MAX_HOURS = 1e6
_ALL_PERCENT = 100.0


def positive(text: str) -> float:
    """Parses a number above zero."""
    return _number(text, lowest=math.ulp(0.0), form="a number above zero")


def not_negative(text: str) -> float:
    """Parses a number, zero included."""
    return _number(text, lowest=0.0, form="zero or a number above it")


def percentage(text: str) -> float:
    """Parses a number above zero, and at most 100."""
    value = positive(text)
    if value > _ALL_PERCENT:
        raise argparse.ArgumentTypeError(f'"{text}" is more than {_ALL_PERCENT:.0f} percent')
    return value


def _number(text: str, *, lowest: float, form: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (lowest <= value < math.inf):
        raise argparse.ArgumentTypeError(f'"{text}" is not {form}, without a unit')
    return value


def whole_number(text: str) -> int:
    """Parses a whole number, zero included."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    if len(text) > _MAX_DIGITS:
        message = f'"{text[:_MAX_DIGITS]}..." is a number of more than {_MAX_DIGITS} digits'
        raise argparse.ArgumentTypeError(message)
    return int(text)


def count(text: str) -> int:
    """Parses a whole number from 1 on."""
    value = whole_number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not 1 or more')
    return value


def seed(text: str) -> int:
    """Parses a seed of at most 64 bits."""
    value = whole_number(text)
    if value >= 2**_SEED_BITS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of 64 bits')
    return value


Shape = tuple[str, tuple[int, ...]]
"""The name of an input and its whole shape."""


def shape(text: str) -> Shape:
    """Parses the name of an input and its whole shape."""
    name, equals, extents = text.rpartition("=")
    numbers = extents.split(",")
    if not (name and equals and all(map(_is_extent, numbers))):
        raise argparse.ArgumentTypeError(f'"{text}" is not INPUT=1,3,224,224')
    return name, tuple(int(n) for n in numbers)


def _is_extent(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def hours(text: str) -> float:
    """Parses a number of hours, zero included."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _MAX_HOURS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of hours')
    return value


def date(text: str) -> int:
    """Parses a day or a minute in UTC, and returns seconds since 1970."""
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M"):
        try:
            moment = time.strptime(text, form)
        except ValueError:
            continue
        return calendar.timegm(moment)
    raise argparse.ArgumentTypeError(
        f'"{text}" is not a date such as 2026-11-21 or 2026-11-21T08:30'
    )


def end_of_date(text: str) -> int:
    """Parses what `date` does, and returns the last second of that day or minute."""
    return date(text) + (59 if "T" in text else 24 * 3600 - 1)


# Options that replace configuration keys, made from the keys' declarations.


class KeyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A group of options for one section: the keys that have a flag. `given` has the values by key,
    as `budget.minutes`."""

    TITLE: ClassVar[str]
    """The title of the group, and the name of the section."""
    SECTION: ClassVar[type[msgspec.Struct]]

    given: Mapping[str, object] = {}


def options_of(group: type[KeyOptions]) -> Iterator[tuple[str, Option]]:
    """Yields the options of a group by the keys that they replace."""
    for declaration in keys_of(group.SECTION, group.TITLE):
        if declaration.key.flag:
            yield declaration.place, _option(declaration)


def _option(declaration: DeclaredKey) -> Option:
    key, kind = declaration.key, inspect.type_info(declaration.kind)
    choices = tuple(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else ()
    return Option(
        key.help,
        "" if choices else key.metavar,
        str if choices else _reader(declaration, kind),
        choices=choices,
        flags=(key.flag,),
    )


def _reader(declaration: DeclaredKey, kind: inspect.Type) -> Callable[[str], object]:
    """Returns the parser of a key: text as it is, or a number within the key's bounds."""
    words = describe_type(kind, declaration.key.unit)
    if words == "a text":
        return str

    def read(text: str) -> Any:  # noqa: ANN401  # as the key declares it
        try:
            value = msgspec.convert(float(text), declaration.kind, strict=False)
        except ValueError:
            value = None
        if value is None or not math.isfinite(value):
            raise argparse.ArgumentTypeError(f'"{text}" is not {words}, without a unit')
        return value

    return read
