"""Answers help and version requests, without importing anything that carries a command out."""

import sys
from collections.abc import Sequence

from tunegate import __version__
from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_tree import HELP, HELP_SUMMARY, command_names, find_declaration, names_in
from tunegate.cli.parse import HELP_FLAGS, command_help, named_command
from tunegate.errors import EnvironmentUnfitError, TunegateError
from tunegate.wording import PAGES


def is_answered(arguments: Sequence[str]) -> bool:
    """Prints the requested page, and returns whether there was one. An invalid command line
    requests none."""
    try:
        text = page(arguments)
    except TunegateError:
        return False
    if text:  # nothing to write is an error, too, where standard output is full and unbuffered
        sys.stdout.write(text)
    return text != ""


def page(arguments: Sequence[str]) -> str:
    """Returns the page to show, '' if a command is to be carried out. Raises ConfigError."""
    words = list(arguments)
    match words:
        case ["--version", *_]:
            return f"tunegate {__version__}\n"
        case ["-h" | "--help", *_] | ["help"] | ["help", "-h" | "--help" | "help", *_]:
            return overview()
        case ["help", *names]:
            return _help_of(named_command(names)[0])
        case _:
            command, rest = named_command(words)
            return _help_of(command) if _asks_for_help(rest) else ""


def _help_of(command: Command | CommandGroup) -> str:
    return group_page(command) if isinstance(command, CommandGroup) else command_help(command)


def _asks_for_help(words: Sequence[str]) -> bool:
    options = words[: words.index("--")] if "--" in words else words
    return not HELP_FLAGS.isdisjoint(options)


# The help of tunegate itself and of a group: the commands there are.

_COLUMN = 14


def overview() -> str:
    """Returns the output of `tunegate --help`."""
    rows = [(name, _summary(name)) for name in command_names()]
    return (
        "usage: tunegate [--version] COMMAND ...\n\n"
        "Stops pull requests that make ONNX models slower.\n\n"
        f"{_listing([*rows, (HELP, HELP_SUMMARY)])}\n"
        f"See: tunegate help COMMAND, and {PAGES}\n"
    )


def _summary(name: str) -> str:
    """Returns a command's summary; an unusable extra costs only its own line."""
    try:
        return find_declaration(name).summary
    except EnvironmentUnfitError as error:
        return f"cannot be used: {error}"


def group_page(group: CommandGroup) -> str:
    """Returns the output of `tunegate GROUP --help`."""
    rows = [(name, _summary(f"{group.name} {name}")) for name in names_in(group)]
    return (
        f"usage: tunegate {group.name} COMMAND ...\n\n"
        f"{group.sentence}\n\n{_listing(rows)}\n"
        f"See: tunegate help {group.name} COMMAND\n"
    )


def _listing(commands: list[tuple[str, str]]) -> str:
    return "commands:\n" + "".join(f"  {name:<{_COLUMN}}{what}\n" for name, what in commands)
