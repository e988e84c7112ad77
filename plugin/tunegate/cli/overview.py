"""The help of tunegate itself and of a group: which commands there are."""

from __future__ import annotations

from tunegate.cli.command import CommandGroup
from tunegate.cli.command_tree import HELP, HELP_SUMMARY, command_names, declared
from tunegate.errors import EnvironmentUnfitError
from tunegate.wording.documentation import PAGES

_COLUMN = 14


def overview() -> str:
    """The answer to `tunegate --help`."""
    listed = [(name, _summary(name)) for name in command_names()]
    return (
        "usage: tunegate [--version] COMMAND ...\n\n"
        "Keeps compiled models fast through CI.\n\n"
        f"{_listing([*listed, (HELP, HELP_SUMMARY)])}\n"
        f"See: tunegate help COMMAND, and {PAGES}\n"
    )


def _summary(name: str) -> str:
    """An extra that cannot be used costs its own line."""
    try:
        return declared(name).summary
    except EnvironmentUnfitError as error:
        return f"cannot be used: {error}"


def group_page(group: CommandGroup) -> str:
    """The answer to `tunegate GROUP --help`."""
    listed = [(name, declared(f"{group.name} {name}").summary) for name in group.commands]
    return (
        f"usage: tunegate {group.name} COMMAND ...\n\n"
        f"{group.sentence}\n\n{_listing(listed)}\n"
        f"See: tunegate help {group.name} COMMAND\n"
    )


def _listing(commands: list[tuple[str, str]]) -> str:
    return "commands:\n" + "".join(f"  {name:<{_COLUMN}}{what}\n" for name, what in commands)
