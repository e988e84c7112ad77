"""The declaration of a command: its options, help and examples, and where its code is.

Nothing here or in `commands/` imports what carries a command out: help must not wait for it.
"""

from __future__ import annotations

import msgspec

from tunegate.cli.shared_options import Options


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """`name` has a space for a command of a group. `options` is the struct that `handler` gets:
    the function `module:name` that returns the exit code, imported when the command runs.
    `judges` is true where that is the exit code of a written verdict. Where it
    `replaces_verdict`, that of an earlier run is gone before anything is read: nobody takes it for
    that of a run which ended in an error."""

    name: str
    summary: str
    options: type[Options]
    handler: str
    examples: tuple[str, ...]
    judges: bool = False
    replaces_verdict: bool = False

    @property
    def sentence(self) -> str:
        """The summary as a sentence."""
        return _sentence(self.summary)


class CommandGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that share their first word."""

    name: str
    summary: str
    commands: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The summary as a sentence."""
        return _sentence(self.summary)


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."
