"""Declarations of options and arguments, as annotations on the fields of an options struct."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Option(msgspec.Struct, frozen=True):
    """One option, as an annotation of the field that holds its value.

    A field of type `bool` is a switch. `flags` is empty where the option has the field's name.
    `instead_of` names a field that cannot be given beside it.
    """

    help: str
    metavar: str = ""
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    instead_of: str = ""
    is_repeated: bool = False


class Argument(msgspec.Struct, frozen=True):
    """A value without an option's name. `count` other than 1 fills a tuple; 0 takes any number."""

    help: str
    metavar: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] = ()
    count: int = 1
