"""Messages between the driver and a bench worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import msgspec

from tunegate.artifacts.changes import Side
from tunegate.config import OperatorLibraryConfig
from tunegate.system.output.artifact_file import ArtifactTensor


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Load the artifact and warm up for at least this long. Inputs come from `seed`, by the rules
    in `inputs` if there are some, otherwise by the artifact's own. An input with several cases
    takes `case`, or one chosen by the seed. Every inference is slowed by `slowdown_percent` in a
    busy loop. `libraries` are those that an artifact may need. With `times_load` it is loaded
    again, and the least processor time is told."""

    artifact: str
    threads: int
    warm_up_seconds: float
    seed: int
    slowdown_percent: float = 0.0
    inputs: tuple[ArtifactTensor, ...] = ()
    case: int | None = None
    libraries: tuple[OperatorLibraryConfig, ...] = ()
    times_load: bool = False


class Block(msgspec.Struct, frozen=True, tag="block"):
    """Time this many inferences one by one, after a few that are thrown away. Stop after
    `most_seconds`, but time at least one."""

    inferences: int
    most_seconds: float


class Profile(msgspec.Struct, frozen=True, tag="profile"):
    """Time every operator of the artifact inside the model, on the inputs of `seed`."""

    artifact: str
    threads: int
    inferences: int
    seed: int
    libraries: tuple[OperatorLibraryConfig, ...] = ()


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Run what was loaded before once more, loaded anew, and tell its outputs. Nothing is timed
    after that."""

    start: Start


class ProfileBoth(msgspec.Struct, frozen=True, tag="profile-both"):
    """Time the layers of two artifacts inside their models, in turns of so many inferences that
    begin with the side `first`; each side has two in a round. `inputs` are the rules of base and
    head, whose values come from `seed`."""

    artifacts: tuple[str, str]
    inputs: tuple[tuple[ArtifactTensor, ...], tuple[ArtifactTensor, ...]]
    threads: int
    inferences: int
    seed: int
    first: Side
    rounds: int = 6
    libraries: tuple[OperatorLibraryConfig, ...] = ()


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """`milliseconds` is the median of the last warm-up inferences. `peak_bytes` is the most
    resident memory so far, `workspace_bytes` what running added to the loaded artifact, at least 1
    MiB; 0 if the system does not say. `load_ms` is the processor's time to load, None if not asked
    for; `first_load_ms` that of the first load, with the imports that it needs."""

    milliseconds: float
    peak_bytes: int = 0
    workspace_bytes: int = 0
    load_ms: float | None = None
    first_load_ms: float = 0.0


class Timed(msgspec.Struct, frozen=True, tag="timed"):
    """`untimed` inferences ran before the timed ones."""

    nanoseconds: tuple[int, ...]
    untimed: int = 0


class Profiled(msgspec.Struct, frozen=True, tag="profiled"):
    """The times of one inference by operator. Calls of one operator are added up."""

    milliseconds: dict[str, float]


class OutputSample(msgspec.Struct, frozen=True):
    """Values of an output: all, or some at even distances, none if it has no numbers or words. If
    it `is_text`, a number stands for each word. `nans` of them are NaN, given as 0."""

    shape: tuple[int, ...]
    values: tuple[float, ...]
    is_text: bool = False
    nans: int = 0


class Sampled(msgspec.Struct, frozen=True, tag="sampled"):
    outputs: tuple[OutputSample, ...]


class ProfiledBoth(msgspec.Struct, frozen=True, tag="profiled-both"):
    """The times of one inference of base and of head by layer, and the layers that differ."""

    milliseconds: tuple[dict[str, float], dict[str, float]]
    differing: tuple[frozenset[str], frozenset[str]]


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    reason: str


BenchRequest = Start | Block | Profile | ProfileBoth | Sample
BenchReply = Ready | Timed | Profiled | ProfiledBoth | Sampled | Broken


# A pair of values: one for the base, one for the head of a launch.

_T = TypeVar("_T")
Result = TypeVar("Result")


class Sides(NamedTuple, Generic[_T]):
    base: _T
    head: _T

    def of(self, side: Side) -> _T:
        """Returns the value of this side."""
        return self.base if side == "base" else self.head

    def map(self, function: Callable[[_T], Result]) -> Sides[Result]:
        """Returns the results of `function` for either side."""
        return Sides(function(self.base), function(self.head))


def other_side(side: Side) -> Side:
    """Returns the other side, which a pair of blocks continues with."""
    return "head" if side == "base" else "base"
