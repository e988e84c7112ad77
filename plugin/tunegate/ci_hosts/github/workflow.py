"""GitHub's workflow commands and files: outputs, summary, annotations. All text is untrusted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from tunegate.ci_hosts.protocol import Annotation

SUMMARY_BYTES = 900 * 1024
MAX_ANNOTATIONS = 10
_MESSAGE_CHARACTERS = 4000


def command_of(annotation: Annotation) -> str:
    """Returns the workflow command of an annotation; shown beside the run, and at the line of the
    file where one is named."""
    file, line = _property(annotation.file), annotation.line
    where = f"file={file},line={line}," if file and line else ""
    text = _data(annotation.text[:_MESSAGE_CHARACTERS])
    return f"::{annotation.level} {where}title={_property(annotation.title)}::{text}"


def output(name: str, value: str) -> str:
    """An entry for GITHUB_OUTPUT, with a delimiter that the value cannot contain."""
    delimiter = f"ghadelimiter_{uuid.uuid4()}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def cut(text: str, most_bytes: int = SUMMARY_BYTES) -> str:
    """The text within GitHub's limit, on a character's boundary."""
    body = text.encode()
    if len(body) <= most_bytes:
        return text
    note = "\n\n(cut: the whole report is in the artifact)\n"
    kept = body[: most_bytes - len(note.encode())]
    return kept.decode(errors="ignore") + note


def append(path: str, text: str) -> None:
    """Appends to one of GitHub's files; does nothing where this is no runner."""
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


@contextmanager
def commands_stopped(stream: TextIO) -> Iterator[None]:
    """Stops the runner's commands inside: names from a pull request are printed, and no line
    of them is a workflow command."""
    token = uuid.uuid4().hex
    stream.write(f"::stop-commands::{token}\n")
    stream.flush()
    try:
        yield
    finally:
        stream.write(f"::{token}::\n")
        stream.flush()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
