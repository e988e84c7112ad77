"""Renders `docs/commands.md`: every core command with its options and examples, from the
declarations. An extra's page has the sections of its own commands."""

from collections.abc import Iterable, Iterator

from tests.support.declared_commands import core_commands
from tunegate.cli.command import Command
from tunegate.cli.parse import Field, fields_of, usage

_HEAD = """\
# Commands

This page is made from the declarations in `plugin/tunegate/cli/commands/` (`make docs`).
`tunegate help COMMAND` shows the same, and `tunegate completion SHELL` makes
bash, zsh and fish complete it.

Exit codes are in the [README](../README.md). What a command prints to stdout is its product;
talk goes to stderr. So the verdict of `run`, `gate` and `compare` is read on stderr,
and in the files of `--out`; with `--json` `verdict.json` goes to stdout. Options are never
abbreviated.
"""


def reference_page() -> str:
    """Returns the whole page in Markdown."""
    commands = tuple(core_commands())
    return "\n".join(
        (_HEAD, *_index(commands), *_shared_sections(commands), *map(command_section, commands))
    )


def shared_fields(commands: Iterable[Command]) -> dict[str, tuple[Field, ...]]:
    """Returns the option groups that several commands take, by title."""
    found: dict[str, dict[str, Field]] = {}
    for command in commands:
        for field in fields_of(command.options):
            if field.title:
                found.setdefault(field.title, {})[field.name] = field
    return {title: tuple(fields.values()) for title, fields in found.items()}


def titles_of(command: Command) -> tuple[str, ...]:
    """Returns the titles of the option groups that a command takes."""
    return tuple(dict.fromkeys(f.title for f in fields_of(command.options) if f.title))


def _index(commands: Iterable[Command]) -> Iterator[str]:
    yield "| command | what it does |"
    yield "|---|---|"
    for command in commands:
        anchor = f"tunegate-{command.name}".replace(" ", "-")
        yield f"| [`tunegate {command.name}`](#{anchor}) | {_cell(command.summary)} |"
    yield ""


def _shared_sections(commands: Iterable[Command]) -> Iterator[str]:
    yield "## Shared options\n"
    for title, fields in shared_fields(commands).items():
        yield f"### Options: {title}\n"
        yield from _table(fields)


def command_section(command: Command) -> str:
    """Returns a command's section of a page."""
    own = [field for field in fields_of(command.options) if not field.title]
    links = (f"[{title}](#options-{title.replace(' ', '-')})" for title in titles_of(command))
    lines = [f"## tunegate {command.name}\n", command.sentence]
    lines += ["", "```", usage(command), "```", ""]
    lines += _table(own) if own else []
    lines += [f"Shared options: {', '.join(links)}.", "", "```sh", *command.examples, "```", ""]
    return "\n".join(lines)


def _table(fields: Iterable[Field]) -> Iterator[str]:
    yield "| option | what it does |"
    yield "|---|---|"
    for field in fields:
        yield f"| {_cell(_option_text(field))} | {_cell(field.help)} |"
    yield ""


def _option_text(field: Field) -> str:
    if not field.flags:
        return f"`{field.metavar}`"
    value = "" if field.is_switch else f" {field.metavar}"
    return ", ".join(f"`{flag}{value}`" for flag in field.flags)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")
