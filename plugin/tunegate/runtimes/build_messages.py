"""Messages to and from the child that makes an artifact for a runtime."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.builds import NumericCheck, SampledErrors
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.inputs import NOTHING_KNOWN, DrawnInput, KnownInputs


class WriteArtifact(msgspec.Struct, frozen=True, tag="write", kw_only=True):
    """`path` is what messages call the model in `file`; `scratch` is private to the request; the
    model is run on the inputs of `seeds`, beside the reference unless this is its own runtime.
    Where its numbers are others, `samples` are the seeds of the inputs that tell its error, and
    `calibration` those of inputs that it may learn from; what both computed on the samples is kept
    in the directory `cases`, if there is one."""

    runtime: RuntimeName
    variant: str
    settings: dict[str, str]
    is_reference: bool
    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]
    threads: int
    device: Literal["cpu", "cuda"] = "cpu"
    directory: str
    scratch: str
    seeds: tuple[int, ...]
    inputs: KnownInputs = NOTHING_KNOWN
    samples: tuple[int, ...] = ()
    calibration: tuple[int, ...] = ()
    cases: str = ""


class Written(msgspec.Struct, frozen=True, tag="written", kw_only=True):
    """`key` is the digest of all that decides what runs. A `check` that did not pass is told by
    who asked. `notes` say what a user should know of how it runs."""

    key: str
    size_bytes: int
    seconds: float
    check: NumericCheck | None = None
    inputs: tuple[DrawnInput, ...] = ()
    sampled: SampledErrors | None = None
    notes: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The model cannot be taken; `memory` where it lacked memory, of which another child may have
    more."""

    reason: str
    memory: bool = False


WriteReply = Written | Refused
"""An answer of the child."""
