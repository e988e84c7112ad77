"""Completions after each command: its options, and the kind of value of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from tunegate.cli.command import Command
from tunegate.cli.command_tree import (
    GROUPS,
    HELP,
    HELP_SUMMARY,
    all_commands,
    command_names,
    declared,
)
from tunegate.cli.parse import Field, fields_of

ValueKind = Literal["file", "directory", "choice", "other"]
_FILES = frozenset({"FILE", "GLOB", "BASE", "HEAD", "VERDICT"})


class Word(msgspec.Struct, frozen=True):
    """A word that can be written, and what it means."""

    text: str
    meaning: str


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """An option under all its names; `kind` is None for a switch."""

    names: tuple[str, ...]
    meaning: str
    metavar: str
    kind: ValueKind | None
    choices: tuple[str, ...]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The completions after one command: options, and values of each kind."""

    command: str
    flags: tuple[Flag, ...]
    arguments: tuple[Flag, ...]


HELP_FLAG = Flag(
    names=("-h", "--help"), meaning="show this help", metavar="", kind=None, choices=()
)


def top_words() -> tuple[Word, ...]:
    """The first word of a command line."""
    words = [Word(name, declared(name).summary) for name in command_names()]
    return (*words, Word(HELP, HELP_SUMMARY))


def group_words() -> dict[str, tuple[Word, ...]]:
    """The second word after each group."""
    return {
        group.name: tuple(
            Word(name, declared(f"{group.name} {name}").summary) for name in group.commands
        )
        for group in GROUPS.values()
    }


def offers() -> Iterator[Offer]:
    """Yields the completions after each command."""
    for command in all_commands():
        yield _offer(command)


def _offer(command: Command) -> Offer:
    fields = fields_of(command.options)
    return Offer(
        command=command.name,
        flags=(*(_flag(field) for field in fields if field.flags), HELP_FLAG),
        arguments=tuple(_flag(field) for field in fields if not field.flags),
    )


def _flag(field: Field) -> Flag:
    return Flag(
        names=field.flags,
        meaning=field.declared.help,
        metavar=field.metavar,
        kind=None if field.is_switch else _kind(field),
        choices=field.declared.choices,
    )


def _kind(field: Field) -> ValueKind:
    if field.declared.choices:
        return "choice"
    if field.metavar in _FILES:
        return "file"
    return "directory" if field.metavar == "DIR" else "other"
