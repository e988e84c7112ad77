"""stdout, which carries only what was asked for."""

from __future__ import annotations

import sys

import msgspec


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_json(artifact: msgspec.Struct) -> None:
    body = msgspec.json.format(msgspec.json.encode(artifact), indent=2)
    write_line(body.decode())
