"""stdout, which carries only what was asked for."""

from __future__ import annotations

import sys

import msgspec

from tunegate.artifact_io import sealed


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(artifact: msgspec.Struct) -> None:
    """As a file of it is written: what was sent to one is read like it."""
    write_line(sealed(artifact).decode())
