"""The options of one command, parsed by argparse from its declaration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from tunegate.cli.command import Command
from tunegate.cli.fields import Field, fields_of, filled
from tunegate.cli.option import Argument, Option
from tunegate.cli.shared_options import Options
from tunegate.cli.suggestions import suggestion
from tunegate.errors import ConfigError


def parsed_options(command: Command, words: Sequence[str]) -> Options:
    """The command's struct. Raises ConfigError for words that the command does not take."""
    parser = _parser(command)
    given, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(_refused(unknown[0], command))
    values = {name: _frozen(value) for name, value in vars(given).items()}
    return filled(command.options, values)


def command_help(command: Command) -> str:
    """The answer to `tunegate COMMAND --help`."""
    return _parser(command).format_help()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        ending = "" if message.endswith("?") else "."
        raise ConfigError(f"{message.rstrip('.')}{ending} See: {self.prog} --help")


def _parser(command: Command) -> _Parser:
    """Returns the argparse parser of a command, whose answer lacks what was not given: the struct
    has the defaults."""
    parser = _Parser(
        prog=f"tunegate {command.name}",
        usage=usage(command),
        description=command.sentence,
        epilog="\n".join(("examples:", *(f"  {line}" for line in command.examples))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # An abbreviation that is clear today would be another option tomorrow.
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    fields = fields_of(command.options)
    sections = {
        title: parser.add_argument_group(title or "options")
        for title in dict.fromkeys(field.title for field in fields)
    }
    exclusive = {
        name: sections[field.title].add_mutually_exclusive_group()
        for field in fields
        if isinstance(field.declared, Option) and (name := field.declared.instead_of)
    }
    for field in fields:
        _add(exclusive.get(field.excluded_with) or sections[field.title], field)
    return parser


def usage(command: Command) -> str:
    """Returns the usage line, with the arguments and the required options."""
    parts = [_usage_of(field) for field in fields_of(command.options)]
    return " ".join(("tunegate", command.name, "[OPTION ...]", *filter(None, parts)))


def _usage_of(field: Field) -> str:
    declared = field.declared
    if isinstance(declared, Option):
        return f"{field.flags[0]} {field.metavar}" if field.is_required else ""
    shown = " ".join([field.metavar] * declared.count) or f"{field.metavar} ..."
    return shown if field.is_required else f"[{shown}]"


def _add(section: argparse._ArgumentGroup, field: Field) -> None:
    declared, text = field.declared, field.help.replace("%", "%%")
    shared: dict[str, Any] = {"help": text, "metavar": field.metavar, "type": declared.read}
    if declared.choices:
        shared["choices"] = declared.choices
    if isinstance(declared, Argument):
        one = None if field.is_required else "?"
        count = {0: "*", 1: one}.get(declared.count, declared.count)
        section.add_argument(field.name, nargs=count, default=field.default, **shared)
    elif field.is_switch:
        section.add_argument(*field.flags, dest=field.name, action="store_true", help=text)
    else:
        action = "append" if declared.is_repeated else "store"
        required = field.is_required
        section.add_argument(
            *field.flags, dest=field.name, action=action, required=required, **shared
        )


def _refused(word: str, command: Command) -> str:
    if not word.startswith("-"):
        return f'"{word}" is one argument too many'
    flags = [flag for field in fields_of(command.options) for flag in field.flags]
    name = word.partition("=")[0]
    return f'there is no option "{name}".{suggestion(name, flags)}'


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
