"""A command line to the command that it names, and that command's options."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate.cli.command import Command, CommandGroup
from tunegate.cli.command_parser import parsed_options
from tunegate.cli.named_command import named_command
from tunegate.cli.shared_options import Options
from tunegate.errors import ConfigError


class Parsed(msgspec.Struct, frozen=True):
    """A command line that was understood; the options are of the command's own struct."""

    command: Command
    options: Options


def parse(arguments: Sequence[str]) -> Parsed:
    """Raises ConfigError for what cannot be understood."""
    found, words = named_command(arguments)
    if isinstance(found, CommandGroup):
        raise ConfigError(f"a command is missing. See: tunegate {found.name} --help")
    return Parsed(found, parsed_options(found, words))
