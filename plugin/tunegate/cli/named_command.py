"""The command that the first words of a command line name."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_tree import COMMANDS, HELP, command_names, declared
from tunegate.cli.suggestions import suggestion
from tunegate.errors import ConfigError
from tunegate.known_extras import refuse_missing

HELP_FLAGS = frozenset({"-h", "--help"})


def named_command(words: Sequence[str]) -> tuple[Command | CommandGroup, Sequence[str]]:
    """The command, and the words after it: a group where no command of it is named. Raises
    ConfigError."""
    if not words:
        raise ConfigError("a command is missing. See: tunegate --help")
    if words[0] not in COMMANDS and words[0] not in (known := command_names()):
        refuse_missing("command", words[0])
        raise _unknown(words[0], (*known, HELP), "tunegate")
    found, rest = declared(words[0]), words[1:]
    if not isinstance(found, CommandGroup) or not rest or rest[0] in HELP_FLAGS:
        return found, rest
    if rest[0] not in found.commands:
        raise _unknown(rest[0], found.commands, f"tunegate {found.name}")
    return declared(f"{found.name} {rest[0]}"), rest[1:]


def _unknown(word: str, known: Sequence[str], program: str) -> ConfigError:
    is_option = word.startswith("-")
    near = suggestion(word, ("--help", "--version") if is_option else known)
    kind = "option" if is_option else "command"
    return ConfigError(f'there is no {kind} "{word}".{near} See: {program} --help')
