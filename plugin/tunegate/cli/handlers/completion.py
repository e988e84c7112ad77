"""`tunegate completion SHELL`: a shell script that shtab makes from the parsers. It runs nothing of
ours, so completion is instant."""

from __future__ import annotations

import argparse

import shtab

from tunegate.cli.command import CommandGroup
from tunegate.cli.command_tree import HELP, HELP_SUMMARY, command_names, find_declaration, names_in
from tunegate.cli.commands.starting import CompletionOptions
from tunegate.cli.handlers.reporting import write_line
from tunegate.cli.parse import parser_of
from tunegate.errors import PASS

_FILES = frozenset({"FILE", "GLOB", "BASE", "HEAD", "VERDICT"})
"""The placeholders of values that may be files."""


def run(options: CompletionOptions) -> int:
    """Prints the script; no shell file is written."""
    write_line(shtab.complete(_whole_parser(), options.shell).rstrip())
    return PASS


def _whole_parser() -> argparse.ArgumentParser:
    """Returns one parser with every command, those of a group below it."""
    parser = argparse.ArgumentParser("tunegate", description="")
    parser.add_argument("--version", action="store_true", help="show the version")
    names = command_names()
    commands = parser.add_subparsers()
    for name in names:
        _add(commands, name, name)
    commands.add_parser(HELP, help=HELP_SUMMARY).add_argument("COMMAND", choices=names)
    return parser


def _add(place: argparse._SubParsersAction[argparse.ArgumentParser], name: str, word: str) -> None:
    declaration = find_declaration(name)
    if isinstance(declaration, CommandGroup):
        below = place.add_parser(word, help=declaration.summary).add_subparsers()
        for each in names_in(declaration):
            _add(below, f"{name} {each}", each)
        return
    parser = place.add_parser(word, help=declaration.summary, parents=[parser_of(declaration)])
    for action in parser._actions:
        if action.metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
