"""The fields of an options struct: which option or argument fills each of them."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from tunegate.cli.key_options import KeyOptions, options_of
from tunegate.cli.option import Argument, Option

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """`title` is that of the group of options that it belongs to, empty for the command's own."""

    name: str
    declared: Option | Argument
    is_switch: bool
    is_required: bool
    default: Any
    title: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Returns the flags on the command line; empty for an argument."""
        if isinstance(self.declared, Argument):
            return ()
        return self.declared.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def metavar(self) -> str:
        """Returns the placeholder of the value in help."""
        return self.declared.metavar or "|".join(self.declared.choices)

    @property
    def excluded_with(self) -> str:
        """The first name of those of which one can be given."""
        of_option = self.declared.instead_of if isinstance(self.declared, Option) else ""
        return of_option or self.name

    @property
    def help(self) -> str:
        """The declared help with the default, where there is one to show."""
        if self.is_switch or self.default in (None, "", ()):
            return self.declared.help
        shown = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{self.declared.help}; default: {shown}"


def fields_of(options: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The command's own fields first, then its groups', those of every command last."""
    found = sorted(_fields(options, ""), key=lambda field: _TITLES.index(field.title))
    return tuple(found)


_TITLES = (
    "",
    "revisions",
    "revisions of the plan",
    "budget",
    "gate",
    "cache",
    "measuring",
    "ci jobs",
    "every command",
)


def _fields(kind: type[msgspec.Struct], title: str) -> Iterator[Field]:
    for field in msgspec.structs.fields(kind):
        if _is_group(field.type):
            yield from _fields_of_group(field.type)
            continue
        value_type, declared = typing.get_args(field.type)
        is_required = field.default is msgspec.NODEFAULT
        yield Field(
            name=field.name,
            declared=declared,
            is_switch=value_type is bool,
            is_required=is_required,
            default=None if is_required else field.default,
            title=title,
        )


def _fields_of_group(group: type[Any]) -> Iterator[Field]:
    if not issubclass(group, KeyOptions):
        yield from _fields(group, group.TITLE)
        return
    for key, option in options_of(group):
        yield Field(
            name=key,
            declared=option,
            is_switch=False,
            is_required=False,
            default=None,
            title=group.TITLE,
        )


def filled(kind: type[Struct], given: Mapping[str, Any]) -> Struct:
    """The struct, and the groups in it, with the values that were
    given and defaults for the rest."""
    if issubclass(kind, KeyOptions):
        return kind(given={key: given[key] for key, _ in options_of(kind) if key in given})
    values = {
        field.name: filled(field.type, given) if _is_group(field.type) else given.get(field.name)
        for field in msgspec.structs.fields(kind)
        if _is_group(field.type) or field.name in given
    }
    return kind(**values)


def _is_group(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
