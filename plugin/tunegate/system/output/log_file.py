"""`--log-file`: all messages of a command in plain text, with the time and without secrets."""

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import TextIO

from tunegate.errors import OutputError
from tunegate.redaction import redact, secrets_of
from tunegate.system.output.owned_directory import refuse_links

_OPENED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
"""Sequences that move a cursor or colour a terminal. Lines are logged whole, however they were
drawn."""


_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ tunegate ")
_STAMP_BYTES = 64


class LogFile:
    """Writes whole lines. `problem` says why the file ended early, if it did."""

    def __init__(
        self,
        path: Path,
        variables: Mapping[str, str] = os.environ,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Replaces an earlier log. Raises OutputError if the file cannot be written, is no plain
        file, or holds anything but a log."""
        self.path = path
        self.problem = ""
        self._secrets = secrets_of(variables)
        self._now = now
        self._begun = ""
        self._file: FileIO | None = _open(path)

    def write(self, text: str) -> None:
        """Writes whole lines, and keeps the rest for the next call."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._keep(line)

    def flush(self) -> None:
        """Does nothing: whole lines are in the file already."""

    def close(self) -> None:
        """Closes the file; later writes are dropped."""
        if self._begun:
            self.write("\n")
        if self._file is not None:
            self._file.close()
            self._file = None

    def _keep(self, line: str) -> None:
        if self._file is None:
            return
        text = redact(_CONTROL.sub("", line), self._secrets)
        try:
            self._file.write(
                f"{self._now():%Y-%m-%dT%H:%M:%SZ} {text}\n".encode(errors="backslashreplace")
            )
        except OSError as error:
            self.problem = f"--log-file: {self.path} has ended early ({error.strerror})"
            self._file.close()
            self._file = None


def _open(path: Path) -> FileIO:
    refuse_links(path.parent)
    try:
        descriptor = os.open(path, _OPENED, 0o666)
        if why := _refusal(descriptor):
            os.close(descriptor)
            raise OutputError(f"--log-file: {path} is {why}. Name another.")
        os.ftruncate(descriptor, 0)
    except OSError as error:
        message = f"--log-file: {path} cannot be written ({error.strerror}). Name another file."
        raise OutputError(message) from error
    return FileIO(descriptor, "w")


def _refusal(descriptor: int) -> str:
    """Returns why the file must not be replaced, '' if it may: a mistyped name could otherwise cost
    a model."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return "no plain file"
    stamp = os.pread(descriptor, _STAMP_BYTES, 0)
    return "no log of tunegate's, and is not empty" if stamp and not _STAMP.match(stamp) else ""


# The stderr of a running command: messages go to the terminal, the log file, or both. A CI that
# reads the log takes a line that begins with `::`, and `##[` or `##vso[` anywhere, for a command.

_COMMAND = re.compile(r"(?<![^\r\n])[^\S\r\n]*:(?=:)|#(?=#)")
_ZERO_WIDTH = "\u200b"


class Talk(io.TextIOBase):
    """Stands for `sys.stderr`. Before `begin` it behaves like the wrapped stream."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.log: LogFile | None = None
        self._line = ""
        self.is_quiet = False
        self.is_verbose = False

    def begin(self, *, quiet: bool, verbose: bool, log: LogFile | None) -> None:
        """Sets what is shown, by the command line."""
        self.is_quiet, self.is_verbose, self.log = quiet, verbose, log

    def write(self, text: str) -> int:
        if not self.is_quiet:
            self._show(text)
        self.note(text)
        return len(text)

    def insist(self, text: str) -> None:
        """Writes an error, which `--quiet` does not suppress."""
        if self.is_quiet:
            self._show(text)
            self.note(text)

    def _show(self, text: str) -> None:
        """Writes the text with a zero-width character in what a CI might take for a command, even
        if the command came in pieces: names of a pull request are in it, wherever lines break."""
        line = without_commands(self._line)
        self._line += text
        self.stream.write(without_commands(self._line)[len(line) :])
        self._line = re.split(r"[\r\n]", self._line)[-1]

    def note(self, text: str) -> None:
        """Writes to the log file alone."""
        if self.log is not None:
            self.log.write(text)

    def end(self) -> None:
        """Closes the log file, and warns if it is incomplete."""
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


def without_commands(text: str) -> str:
    """Returns the text with a zero-width character in each beginning of a CI's command."""
    return _COMMAND.sub(lambda match: match.group() + _ZERO_WIDTH, text)


@contextmanager
def talking() -> Iterator[Talk]:
    """Replaces `sys.stderr` by a Talk, and restores it afterwards."""
    talk = Talk(sys.stderr)
    with redirect_stderr(talk):
        try:
            yield talk
        finally:
            talk.end()
