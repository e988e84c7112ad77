"""Candidates: a runtime in one of the variants that it offers."""

from collections.abc import Mapping
from typing import Final

import msgspec

from tunegate.artifacts.changes import ModelPath
from tunegate.config import TargetConfig
from tunegate_cache.format.how_built import HowBuilt

RuntimeName = str
"""The name of a runtime in the configuration, on command lines and in artifacts."""


PRECISION: Final = "precision"
"""The setting for the precision that a candidate computes in."""
FLOAT32: Final = "float32"
"""The precision of a candidate that does not say its own."""
LAUNCH: Final = "launch"
"""The setting for how a candidate's kernels are launched."""
QUANTIZATION: Final = "quantization"
"""The setting for when the ranges of activations are known."""
STATIC: Final = "static"
"""The ranges come from inputs that the user gave: `PreparedModel.calibration` has some."""


class CandidateBuild(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime with its own settings. `variant` names them, '' for the usual ones. `title` is for
    people. `is_tuned`: the runtime has tasks to tune."""

    runtime: RuntimeName
    title: str
    variant: str = ""
    settings: dict[str, str] = {}
    is_tuned: bool = False

    @property
    def name(self) -> str:
        """Its name among the candidates of its target."""
        return candidate_name(self.runtime, self.variant)

    @property
    def precision(self) -> str:
        """The numbers that it computes in, as `float32`, `tfloat32` or `int8`."""
        return self.settings.get(PRECISION, FLOAT32)

    @property
    def is_calibrated(self) -> bool:
        """True if it is calibrated on values that the user gave for the inputs."""
        return self.settings.get(QUANTIZATION) == STATIC


Candidates = Mapping[str, tuple[CandidateBuild, ...]]
"""The candidates of each target by its name, in the order in which they are tried."""


def candidate_name(runtime: RuntimeName, variant: str) -> str:
    return f"{runtime}-{variant}" if variant else runtime


# Elections of earlier runs, for unchanged models.


class RememberedElection(msgspec.Struct, frozen=True, kw_only=True):
    """`winner` names a candidate, and `how` it was built, if known. `milliseconds` are those of one
    inference under each candidate, measured at `elected_at` (seconds since 1970) on a `device` of
    this name, number of `units` and `driver`. `is_cut_short`: candidates without a time are still
    to be measured, except the `refused`, which cannot ship."""

    model: ModelPath
    target: str
    winner: str
    milliseconds: dict[str, float]
    elected_at: int
    device: str
    units: int
    driver: str = ""
    how: HowBuilt | None = None
    is_cut_short: bool = False
    refused: tuple[str, ...] = ()

    def leaves_out(self, candidate: str) -> bool:
        """Returns whether a candidate is not tried again: it lost, cannot ship, or the election is
        over."""
        has_lost = not self.is_cut_short or candidate in {*self.milliseconds, *self.refused}
        return has_lost and candidate != self.winner


# The runtime that is the reference: its times stand beside the others' in the report.

REFERENCE: Final[RuntimeName] = "onnxruntime"


# The variants in which runtimes of NVIDIA GPUs run a model: the settings of each candidate.

GRAPH: Final = "graph"
"""Kernels are captured once as a graph, and launched together."""
TFLOAT32: Final = "tfloat32"
"""Products of float32 whose factors have 10 bits of mantissa."""
FLOAT16: Final = "float16"

_PRECISIONS: Final = {"": {}, "tf32": {PRECISION: TFLOAT32}, "f16": {PRECISION: FLOAT16}}


def cuda_variants(
    target: TargetConfig, more: Mapping[str, Mapping[str, str]] | None = None
) -> Mapping[str, Mapping[str, str]]:
    """Returns float32, the variants that may differ from it, and `more`; with CUDA graphs if the
    target has them."""
    launch = {LAUNCH: GRAPH} if target.cuda_graphs else {}
    every = {**_PRECISIONS, **(more or {})}
    return {name: {**settings, **launch} for name, settings in every.items()}
