"""Values of the command line, each read or refused in words."""

from __future__ import annotations

import argparse
import calendar
import math
import time

_SEED_BITS = 64
_MAX_HOURS = 1e6
_ALL_PERCENT = 100.0


def positive(text: str) -> float:
    """A number above zero."""
    return _number(text, lowest=math.ulp(0.0), wanted="a number above zero")


def not_negative(text: str) -> float:
    """A number, zero included."""
    return _number(text, lowest=0.0, wanted="zero or a number above it")


def percentage(text: str) -> float:
    """A number above zero, 100 at the most."""
    value = positive(text)
    if value > _ALL_PERCENT:
        raise argparse.ArgumentTypeError(f'"{text}" is more than {_ALL_PERCENT:.0f} percent')
    return value


def _number(text: str, *, lowest: float, wanted: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (lowest <= value < math.inf):
        raise argparse.ArgumentTypeError(f'"{text}" is not {wanted}, without a unit')
    return value


def whole(text: str) -> int:
    """A whole number, zero included."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number')
    return int(text)


def count(text: str) -> int:
    """1 or more."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not 1 or more')
    return value


def seed(text: str) -> int:
    """A seed of 64 bits at most."""
    value = whole(text)
    if value >= 2**_SEED_BITS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of 64 bits')
    return value


Shape = tuple[str, tuple[int, ...]]
"""The name of an input and its whole shape."""


def shape(text: str) -> Shape:
    """The name of an input and its whole shape."""
    name, equals, extents = text.rpartition("=")
    numbers = extents.split(",")
    if not (name and equals and all(n.isdecimal() and int(n) > 0 for n in numbers)):
        raise argparse.ArgumentTypeError(f'"{text}" is not INPUT=1,3,224,224')
    return name, tuple(int(n) for n in numbers)


def hours(text: str) -> float:
    """A number of hours, zero included."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _MAX_HOURS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of hours')
    return value


def date(text: str) -> int:
    """Seconds since 1970 of a day or a minute, in UTC."""
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M"):
        try:
            parsed = time.strptime(text, form)
        except ValueError:
            continue
        return calendar.timegm(parsed)
    raise argparse.ArgumentTypeError(
        f'"{text}" is not a date such as 2026-11-21 or 2026-11-21T08:30'
    )
