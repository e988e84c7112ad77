"""The commands with their declarations, those of groups in their places."""

from collections.abc import Iterable, Iterator

from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_tree import COMMANDS, command_names, declared


def core_commands() -> Iterator[Command]:
    """Yields every core command; a group's commands come in its place."""
    return _commands(COMMANDS)


def all_commands() -> Iterator[Command]:
    """Yields every command, those of installed extras last."""
    return _commands(command_names())


def _commands(names_of_all: Iterable[str]) -> Iterator[Command]:
    for name in names_of_all:
        found = declared(name)
        names = (
            [f"{name} {each}" for each in found.commands] if isinstance(found, CommandGroup) else []
        )
        commands = map(declared, names) if names else [found]
        yield from (each for each in commands if isinstance(each, Command))
