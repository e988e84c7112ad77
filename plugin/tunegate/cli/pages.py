"""The command lines that a page answers: help and the version. Nothing that carries a command out
is imported for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tunegate import __version__
from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_parser import command_help
from tunegate.cli.named_command import HELP_FLAGS, named_command
from tunegate.cli.overview import group_page, overview
from tunegate.errors import TunegateError


def is_answered(arguments: Sequence[str]) -> bool:
    """Prints the page that was asked for, and returns whether one was. What cannot be understood is
    no page."""
    try:
        text = page(arguments)
    except TunegateError:
        return False
    sys.stdout.write(text)
    return text != ""


def page(arguments: Sequence[str]) -> str:
    """Returns the page to show; empty where a command is to be carried out. Raises ConfigError."""
    words = list(arguments)
    match words:
        case ["--version", *_]:
            return f"tunegate {__version__}\n"
        case ["-h" | "--help", *_] | ["help"] | ["help", "-h" | "--help" | "help", *_]:
            return overview()
        case ["help", *names]:
            return _help_of(named_command(names)[0])
        case _:
            found, rest = named_command(words)
            return _help_of(found) if _asks_for_help(rest) else ""


def _help_of(found: Command | CommandGroup) -> str:
    return group_page(found) if isinstance(found, CommandGroup) else command_help(found)


def _asks_for_help(words: Sequence[str]) -> bool:
    options = words[: words.index("--")] if "--" in words else words
    return not HELP_FLAGS.isdisjoint(options)
