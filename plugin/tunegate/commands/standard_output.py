"""The standard output, which carries only what was asked for."""

from __future__ import annotations

import sys

import msgspec

from tunegate.artifact_io import sealed


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(artifact: msgspec.Struct) -> None:
    """Writes an artifact as its file has it: what was sent to a pipe is read like a file."""
    write_line(sealed(artifact).decode())
