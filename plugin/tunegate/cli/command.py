"""The declaration of a command: its options, help and examples, and where its code is.

Nothing here or in `commands/` imports what carries a command out: help must be fast.
"""

import msgspec

from tunegate.cli.shared_options import Options


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """`name` has a space for a command of a group. `options` is the struct that `handler` gets: the
    function `module:name`, imported when the command runs, which returns the exit code. `judges`:
    that is the exit code of a written verdict. `replaces_verdict`: an earlier run's verdict is
    removed before anything is read, so that nobody takes it for that of a failed run."""

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
