"""The stderr of a running command: messages go to the terminal, to the log file, or to both."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import TextIO

from tunegate.edges.output.log_file import LogFile


class Talk(io.TextIOBase):
    """Stands for `sys.stderr`. Without `begin` it is the stream that it was made of."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.log: LogFile | None = None
        self.is_quiet = False
        self.is_verbose = False

    def begin(self, *, quiet: bool, verbose: bool, log: LogFile | None) -> None:
        """Begins to talk as the command line asks."""
        self.is_quiet, self.is_verbose, self.log = quiet, verbose, log

    def write(self, text: str) -> int:
        if not self.is_quiet:
            self.stream.write(text)
        self.note(text)
        return len(text)

    def insist(self, text: str) -> None:
        """Writes what `--quiet` asks for too, where it was asked: an error."""
        if self.is_quiet:
            self.stream.write(text)
            self.note(text)

    def note(self, text: str) -> None:
        """Writes to the log file alone."""
        if self.log is not None:
            self.log.write(text)

    def end(self) -> None:
        """Closes the log file, and warns where it is not whole."""
        if self.log is None:
            return
        self.log.close()
        if self.log.problem:
            self.stream.write(f"tunegate: warning: {self.log.problem}\n")

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty() and not self.is_quiet

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.stream.fileno()


@contextmanager
def talking() -> Iterator[Talk]:
    """`sys.stderr` is a Talk, and what it was again afterwards."""
    talk = Talk(sys.stderr)
    with redirect_stderr(talk):
        try:
            yield talk
        finally:
            talk.end()
