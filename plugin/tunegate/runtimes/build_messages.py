"""What is asked of the child that writes an artifact for ONNX Runtime, and what it answers."""

from __future__ import annotations

import msgspec


class WriteArtifact(msgspec.Struct, frozen=True, tag="write", kw_only=True):
    """`path` is what messages call the model in `file`; `scratch` is private to the request; the
    model is run on the inputs of `seed`."""

    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]
    threads: int
    directory: str
    scratch: str
    seed: int


class Written(msgspec.Struct, frozen=True, tag="written", kw_only=True):
    """`key` is the digest of all that decides what runs."""

    key: str
    size_bytes: int
    seconds: float


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The model cannot be taken."""

    reason: str


WriteReply = Written | Refused
"""What the child answers."""
