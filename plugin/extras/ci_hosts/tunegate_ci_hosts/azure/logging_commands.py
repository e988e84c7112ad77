"""Logging commands of Azure Pipelines: annotations, variables, the summary of a run.

An agent takes every line of a log with `##vso[` in it for a command, whoever printed it. All text
is untrusted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tunegate.ci.protocol import Annotation

_MAX_CHARACTERS = 4000
_TYPES = {"error": "error", "warning": "warning", "notice": "warning"}
_ZERO_WIDTH = "\u200b"


def issue_command(annotation: Annotation) -> str:
    """Returns an error or a warning of the run, at the file's line if it names one."""
    properties = {"type": _TYPES[annotation.level]}
    if annotation.file and annotation.line:
        properties |= {"sourcepath": annotation.file, "linenumber": str(annotation.line)}
    text = f"{annotation.title}: {annotation.text}"[:_MAX_CHARACTERS]
    return _command("task.logissue", properties, text)


def variable_command(name: str, value: str) -> str:
    """Returns a variable for later steps and, with the step's name, for later jobs."""
    variable = f"TUNEGATE_{name.upper()}"
    return _command("task.setvariable", {"variable": variable, "isOutput": "true"}, value)


def summary_command(page: Path) -> str:
    """Returns the command that shows a Markdown page in the run's summary."""
    return _command("task.uploadsummary", {}, str(page))


def is_plain(value: str) -> bool:
    """Returns whether it is one line of characters that no shell or macro interprets."""
    return value.isascii() and value.isprintable() and not set(value) & set("\"'\\$`#%;]")


@contextmanager
def logging_commands_broken() -> Iterator[None]:
    """Breaks all commands printed inside, as names of a pull request may contain some."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _Broken(before[0]), _Broken(before[1])
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


class _Broken(io.TextIOBase):
    """Writes text to a stream with a zero-width character between two number signs, even across two
    pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ends_with_sign = False

    def write(self, text: str) -> int:
        begun = f"#{text}" if self._ends_with_sign else text
        while "##" in begun:
            begun = begun.replace("##", f"#{_ZERO_WIDTH}#")
        self._stream.write(begun[1:] if self._ends_with_sign else begun)
        if text:
            self._ends_with_sign = text.endswith("#")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Returns the encoding of the wrapped stream."""
        return self._stream.encoding


def _command(name: str, properties: Mapping[str, str], text: str) -> str:
    said = "".join(
        f"{key}={_escape(value, in_property=True)};" for key, value in properties.items()
    )
    return f"##vso[{name}{' ' if said else ''}{said}]{_escape(text)}"


def _escape(text: str, *, in_property: bool = False) -> str:
    """Returns the text as the agent reads it back, without invisible characters; no command can
    begin in it."""
    shown = "".join(c for c in text if c.isprintable() or c in "\r\n")
    escaped = shown.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")
    if in_property:
        escaped = escaped.replace(";", "%3B").replace("]", "%5D")
    while "##" in escaped:
        escaped = escaped.replace("##", f"#{_ZERO_WIDTH}#")
    return escaped
