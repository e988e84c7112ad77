"""Messages to and from the child that makes an artifact for a runtime."""

from typing import Literal

import msgspec

from tunegate.artifacts.builds import NumericCheck, SampledErrors
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.inputs import NOTHING_KNOWN, DrawnInput, KnownInputs
from tunegate.config import OperatorLibraryConfig


class WriteArtifact(msgspec.Struct, frozen=True, tag="write", kw_only=True):
    """A request to make an artifact of the model in `file`, called `path` in messages; `scratch` is
    private to it. The model runs on the inputs of `seeds`, compared with the reference unless this
    is its own runtime. For a build in lower precision, `samples` are the seeds of inputs that
    measure its error, `calibration` those it may learn from, and the results on the samples are
    saved in the directory `cases`, if given. `libraries` may be loaded for custom operators."""

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
    libraries: tuple[OperatorLibraryConfig, ...] = ()


class WrittenBuild(msgspec.Struct, frozen=True, tag="written", kw_only=True):
    """`key` is the digest of everything that decides what runs. The requester reports a failed
    `check`. `notes` tell a user how it runs."""

    key: str
    size_bytes: int
    seconds: float
    check: NumericCheck | None = None
    inputs: tuple[DrawnInput, ...] = ()
    sampled: SampledErrors | None = None
    notes: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The model cannot be built; `memory` if memory ran out, of which another child may have more,
    `is_too_slow` if no runtime need try."""

    reason: str
    memory: bool = False
    is_too_slow: bool = False


WriteReply = WrittenBuild | Refused
"""A reply of the child."""
