"""`man tunegate`: every command, option and example, as they are declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunegate import __version__, errors
from tunegate.cli.command import Command
from tunegate.cli.command_parser import usage
from tunegate.cli.command_tree import all_commands
from tunegate.cli.fields import Field, fields_of
from tunegate.cli.reference_page import shared_fields, titles_of

_EXIT_STATUS = {
    errors.PASS: "pass, new, or nothing to do",
    errors.FAIL: "a regression",
    errors.USAGE: "usage, configuration or input error",
    errors.INCONCLUSIVE: "inconclusive: the machine is too noisy, or the change lies on the margin",
    errors.UNFIT: "the environment is unfit: the machine, the installation, or what the run needs",
    errors.NO_BASELINE: "no baseline: there is nothing to compare with, though there should be",
    errors.BUG: "a bug of tunegate",
    errors.CANCELLED: "cancelled; what was finished is kept",
}


def man_page() -> str:
    """The whole page, in the macros of man(7)."""
    commands = tuple(all_commands())
    return "\n".join(_lines(commands)) + "\n"


def _lines(commands: tuple[Command, ...]) -> Iterator[str]:
    yield f'.TH TUNEGATE 1 "" "tunegate {__version__}" "User Commands"'
    yield from (".SH NAME", r"tunegate \- keeps compiled models fast through CI")
    yield from (".SH SYNOPSIS", r".B tunegate", r"COMMAND [OPTION ...]", ".br")
    yield from (".B tunegate help", "COMMAND", ".SH COMMANDS")
    for command in commands:
        yield from _command(command)
    yield ".SH SHARED OPTIONS"
    for title, fields in shared_fields(commands).items():
        yield f".SS {_text(title.capitalize())}"
        yield from _options(fields)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_STATUS.items():
        yield from (".TP", f".B {code}", _text(meaning))


def _command(command: Command) -> Iterator[str]:
    yield f".SS {_text(usage(command))}"
    yield _text(command.sentence)
    yield f"Shared options: {_text(', '.join(titles_of(command)))}."
    yield from _options(field for field in fields_of(command.options) if not field.title)
    yield from (".PP", ".nf", ".RS")
    yield from (_text(line) for line in command.examples)
    yield from (".RE", ".fi")


def _options(fields: Iterable[Field]) -> Iterator[str]:
    for field in fields:
        value = "" if field.is_switch else rf" \fI{_text(field.metavar)}\fR"
        names = [rf"\fB{_text(flag)}\fR{value}" for flag in field.flags]
        yield from (".TP", ", ".join(names) or value.strip(), _text(field.help))


def _text(text: str) -> str:
    """Nothing in it is a macro, and no hyphen becomes a dash."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
