"""The commands with their declarations, those of groups in their places."""

from collections.abc import Callable, Iterable, Iterator

from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_tree import COMMANDS, command_names, find_declaration, names_in


def core_commands() -> Iterator[Command]:
    """Yields every core command; a group's commands come in its place."""
    return _commands(COMMANDS, lambda group: group.commands)


def all_commands() -> Iterator[Command]:
    """Yields every command, those of installed extras last."""
    return _commands(command_names(), names_in)


def _commands(
    names_of_all: Iterable[str], below: Callable[[CommandGroup], Iterable[str]]
) -> Iterator[Command]:
    for name in names_of_all:
        found = find_declaration(name)
        names = (
            [f"{name} {each}" for each in below(found)] if isinstance(found, CommandGroup) else []
        )
        commands = map(find_declaration, names) if names else [found]
        yield from (each for each in commands if isinstance(each, Command))
