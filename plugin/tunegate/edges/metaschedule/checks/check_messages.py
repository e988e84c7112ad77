"""What is asked of the child that checks a compiled model, and what it answers."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import NumericCheck
from tunegate.engine.protocol import Failed


class CheckArtifact(msgspec.Struct, frozen=True, tag="check", kw_only=True):
    """`reference` is the ONNX file that ONNX Runtime runs; `kind` is the
    target's; `seeds` make the inputs."""

    directory: str
    reference: str
    kind: str
    seeds: tuple[int, ...]


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """`check` is None where this machine has no device to run it on."""

    check: NumericCheck | None = None


CheckReply = Checked | Failed
