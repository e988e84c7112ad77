"""A command line to the command that it names, and that command's options."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from tunegate import __version__
from tunegate.cli.command import Command, Group
from tunegate.cli.command_parser import command_help, parsed_options
from tunegate.cli.command_tree import COMMANDS, HELP, declared
from tunegate.cli.help_pages import group_page, overview
from tunegate.cli.shared_options import Options
from tunegate.cli.suggestions import suggestion
from tunegate.errors import ConfigError

_HELP = frozenset({"-h", "--help"})


class Parsed(msgspec.Struct, frozen=True):
    """A command line that was understood; the options are of the command's own struct."""

    command: Command
    options: Options


def parse(arguments: Sequence[str]) -> Parsed | None:
    """None where the line asks for help or the version, which are printed. Raises ConfigError for
    what cannot be understood."""
    page = _page(arguments)
    if page:
        sys.stdout.write(page)
        return None
    found, words = _found(arguments)
    if isinstance(found, Group):
        raise ConfigError(f"a command is missing. See: tunegate {found.name} --help")
    return Parsed(found, parsed_options(found, words))


def _page(arguments: Sequence[str]) -> str:
    """The page that the line asks for; empty where it asks for a command to be carried out."""
    match list(arguments):
        case ["--version", *_]:
            return f"tunegate {__version__}\n"
        case ["-h" | "--help", *_] | ["help"]:
            return overview()
        case ["help", *words]:
            return _help_of(_found(words)[0])
        case _:
            found, words = _found(arguments)
            return _help_of(found) if _asks_for_help(words) else ""


def _help_of(found: Command | Group) -> str:
    return group_page(found) if isinstance(found, Group) else command_help(found)


def _asks_for_help(words: Sequence[str]) -> bool:
    options = words[: words.index("--")] if "--" in words else words
    return not _HELP.isdisjoint(options)


def _found(arguments: Sequence[str]) -> tuple[Command | Group, list[str]]:
    """What the first words name, and the rest of them: a group where no command of it is named.
    Raises ConfigError."""
    words = list(arguments)
    if not words:
        raise ConfigError("a command is missing. See: tunegate --help")
    _require(words[0], (*COMMANDS, HELP), "tunegate")
    found, rest = declared(words[0]), words[1:]
    if not isinstance(found, Group) or not rest or rest[0] in _HELP:
        return found, rest
    _require(rest[0], found.commands, f"tunegate {found.name}")
    return declared(f"{found.name} {rest[0]}"), rest[1:]


def _require(word: str, known: Sequence[str], program: str) -> None:
    if word in known:
        return
    is_option = word.startswith("-")
    near = suggestion(word, ("--help", "--version") if is_option else known)
    kind = "option" if is_option else "command"
    raise ConfigError(f'there is no {kind} "{word}".{near} See: {program} --help')
