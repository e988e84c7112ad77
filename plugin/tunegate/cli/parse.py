"""Parses a command line: the command it names, and that command's options."""

from __future__ import annotations

import argparse
import difflib
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_tree import COMMANDS, HELP, command_names, find_declaration, names_in
from tunegate.cli.option import Argument, KeyOptions, Option, options_of
from tunegate.cli.shared_options import Options
from tunegate.errors import ConfigError
from tunegate.known_extras import refuse_missing


class Parsed(msgspec.Struct, frozen=True):
    """A parsed command line; the options are of the command's own struct."""

    command: Command
    options: Options


def parse(arguments: Sequence[str]) -> Parsed:
    """Parses a command line. Raises ConfigError if it is invalid."""
    command, words = named_command(arguments)
    if isinstance(command, CommandGroup):
        raise ConfigError(f"a command is missing. See: tunegate {command.name} --help")
    return Parsed(command, parsed_options(command, words))


# The command that the first words of a command line name.

HELP_FLAGS = frozenset({"-h", "--help"})


def named_command(words: Sequence[str]) -> tuple[Command | CommandGroup, Sequence[str]]:
    """Returns the command and the words after it; a group if no command of it is named. Raises
    ConfigError."""
    if not words:
        raise ConfigError("a command is missing. See: tunegate --help")
    if words[0] not in COMMANDS and words[0] not in (names := command_names()):
        refuse_missing("command", words[0])
        raise _unknown_word_error(words[0], (*names, HELP), "tunegate")
    command, rest = find_declaration(words[0]), words[1:]
    if not isinstance(command, CommandGroup) or not rest or rest[0] in HELP_FLAGS:
        return command, rest
    if rest[0] not in command.commands and rest[0] not in (names := names_in(command)):
        refuse_missing("command", f"{command.name} {rest[0]}")
        raise _unknown_word_error(rest[0], names, f"tunegate {command.name}")
    return find_declaration(f"{command.name} {rest[0]}"), rest[1:]


def _unknown_word_error(word: str, words: Sequence[str], program: str) -> ConfigError:
    is_option = word.startswith("-")
    near = suggestion(word, ("--help", "--version") if is_option else words)
    kind = "option" if is_option else "command"
    return ConfigError(f'there is no {kind} "{word}".{near} See: {program} --help')


# The options of one command, parsed by argparse from its declaration.


def parsed_options(command: Command, words: Sequence[str]) -> Options:
    """Returns the command's struct. Raises ConfigError for words that the command does not take."""
    parser = parser_of(command)
    namespace, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(_refusal(unknown[0], command))
    values = {name: _list_to_tuple(value) for name, value in vars(namespace).items()}
    return fill_struct(command.options, values)


def command_help(command: Command) -> str:
    """Returns the output of `tunegate COMMAND --help`."""
    return parser_of(command).format_help()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        ending = "" if message.endswith("?") else "."
        raise ConfigError(f"{message.rstrip('.')}{ending} See: {self.prog} --help")


def parser_of(command: Command) -> _Parser:
    """Returns the argparse parser of a command. Its result lacks what was not given: the struct has
    the defaults."""
    parser = _Parser(
        prog=f"tunegate {command.name}",
        usage=usage(command),
        description=command.sentence,
        epilog="\n".join(("examples:", *(f"  {line}" for line in command.examples))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # An abbreviation that is unique today may not be tomorrow.
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
    option = field.declared
    if isinstance(option, Option):
        return f"{field.flags[0]} {field.metavar}" if field.is_required else ""
    text = " ".join([field.metavar] * option.count) or f"{field.metavar} ..."
    return text if field.is_required else f"[{text}]"


def _path(text: str) -> Path:
    """Parses a path. An empty one would be this directory, and comes of a variable that is not
    set."""
    if not text:
        raise argparse.ArgumentTypeError("is empty: name a path")
    return Path(text)


def _add(section: argparse._ArgumentGroup, field: Field) -> None:
    option, text = field.declared, field.help.replace("%", "%%")
    read = _path if option.read is Path else option.read
    keywords: dict[str, Any] = {"help": text, "metavar": field.metavar, "type": read}
    if option.choices:
        keywords["choices"] = option.choices
    if isinstance(option, Argument):
        one = None if field.is_required else "?"
        count = {0: "*", 1: one}.get(option.count, option.count)
        section.add_argument(field.name, nargs=count, default=field.default, **keywords)
    elif field.is_switch:
        section.add_argument(*field.flags, dest=field.name, action="store_true", help=text)
    else:
        action = "append" if option.is_repeated else "store"
        keywords |= {"dest": field.name, "action": action, "required": field.is_required}
        section.add_argument(*field.flags, **keywords)


def _refusal(word: str, command: Command) -> str:
    if not word.startswith("-"):
        return f'"{word}" is one argument too many'
    flags = [flag for field in fields_of(command.options) for flag in field.flags]
    name = word.partition("=")[0]
    return f'there is no option "{name}".{suggestion(name, flags)}'


def _list_to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


# The fields of an options struct: the option or argument that fills each.

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """`title` is the field's option group, '' for the command's own."""

    name: str
    declared: Option | Argument
    is_switch: bool
    is_required: bool
    default: Any
    title: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Returns the flags on the command line, none for an argument."""
        if isinstance(self.declared, Argument):
            return ()
        return self.declared.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def metavar(self) -> str:
        """Returns the placeholder of the value in help."""
        return self.declared.metavar or "|".join(self.declared.choices)

    @property
    def excluded_with(self) -> str:
        """Returns the first of the mutually exclusive names."""
        of_option = self.declared.instead_of if isinstance(self.declared, Option) else ""
        return of_option or self.name

    @property
    def help(self) -> str:
        """Returns the declared help, with the default if there is one to show."""
        if self.is_switch or self.default in (None, "", ()):
            return self.declared.help
        default = f"{self.default:g}" if isinstance(self.default, float) else self.default
        return f"{self.declared.help}; default: {default}"


def fields_of(options: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Returns the command's own fields, then its groups', and last those of every command."""
    fields = sorted(_fields(options, ""), key=lambda field: _TITLES.index(field.title))
    return tuple(fields)


_TITLES = (
    "",
    "revisions",
    "revisions of the plan",
    "budget",
    "gate",
    "cache",
    "measuring",
    "ci jobs",
    "every command",
)


def _fields(kind: type[msgspec.Struct], title: str) -> Iterator[Field]:
    for field in msgspec.structs.fields(kind):
        if _is_group(field.type):
            yield from _fields_of_group(field.type)
            continue
        value_type, declared = typing.get_args(field.type)
        is_required = field.default is msgspec.NODEFAULT
        yield Field(
            name=field.name,
            declared=declared,
            is_switch=value_type is bool,
            is_required=is_required,
            default=None if is_required else field.default,
            title=title,
        )


def _fields_of_group(group: type[Any]) -> Iterator[Field]:
    if not issubclass(group, KeyOptions):
        yield from _fields(group, group.TITLE)
        return
    for key, option in options_of(group):
        yield Field(
            name=key,
            declared=option,
            is_switch=False,
            is_required=False,
            default=None,
            title=group.TITLE,
        )


def fill_struct(kind: type[Struct], given_options: Mapping[str, Any]) -> Struct:
    """Returns the struct and its groups with the given values, and defaults for the rest."""
    if issubclass(kind, KeyOptions):
        return kind(
            given={key: given_options[key] for key, _ in options_of(kind) if key in given_options}
        )
    values = {
        field.name: fill_struct(field.type, given_options)
        if _is_group(field.type)
        else given_options.get(field.name)
        for field in msgspec.structs.fields(kind)
        if _is_group(field.type) or field.name in given_options
    }
    return kind(**values)


def _is_group(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


# Suggestions for a word that does not exist.

_SHORT = 4


def suggestion(word: str, words: Iterable[str]) -> str:
    """Returns a sentence with the likeliest words, after a space; '' if none is near."""
    names = sorted(words)
    bare = word.lstrip("-")
    with_prefix = [name for name in names if bare and name.lstrip("-").startswith(bare)]
    near = with_prefix or difflib.get_close_matches(word, names, n=2, cutoff=_cutoff(bare))
    return f" Did you mean {' or '.join(near[:2])}?" if near else ""


def _cutoff(word: str) -> float:
    """Returns the least similarity of a suggestion: one wrong letter weighs more in a short
    word."""
    return 0.6 if len(word) <= _SHORT else 0.7
