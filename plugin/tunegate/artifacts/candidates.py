"""Candidates: a runtime in one of the variants that it offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from tunegate.artifacts.changes import ModelPath
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
    """A runtime with settings that mean something to it alone. `variant` names them, and is '' for
    the usual ones; `title` is for people. `is_tuned`: its runtime has tasks to tune."""

    runtime: RuntimeName
    title: str
    variant: str = ""
    settings: dict[str, str] = {}
    is_tuned: bool = False

    @property
    def name(self) -> str:
        """Tells it from the other candidates of its target."""
        return candidate_name(self.runtime, self.variant)

    @property
    def precision(self) -> str:
        """The numbers in which it computes: `float32`, `bfloat16`, `float16` or `int8`."""
        return self.settings.get(PRECISION, FLOAT32)

    @property
    def is_calibrated(self) -> bool:
        """Returns whether the candidate is calibrated on values that the user gave for the
        inputs."""
        return self.settings.get(QUANTIZATION) == STATIC


Candidates = Mapping[str, tuple[CandidateBuild, ...]]
"""The candidates of each target by its name, in the order in which they are tried."""


def candidate_name(runtime: RuntimeName, variant: str) -> str:
    return f"{runtime}-{variant}" if variant else runtime


# Elections of earlier runs, for models that are unchanged.


class RememberedElection(msgspec.Struct, frozen=True, kw_only=True):
    """`winner` is the name of a candidate, and `how` it was built, if that is known; `milliseconds`
    are those of one inference under each candidate, as they were measured at `elected_at`, in
    seconds since 1970, on a `device` of this name and number of `units`. `is_cut_short`: it goes on
    with those that have no time here, but for the `refused`, which cannot ship."""

    model: ModelPath
    target: str
    winner: str
    milliseconds: dict[str, float]
    elected_at: int
    device: str
    units: int
    how: HowBuilt | None = None
    is_cut_short: bool = False
    refused: tuple[str, ...] = ()

    def leaves_out(self, candidate: str) -> bool:
        """Returns whether a candidate is not tried again: it lost, or cannot ship, or the election
        is over."""
        has_lost = not self.is_cut_short or candidate in {*self.milliseconds, *self.refused}
        return has_lost and candidate != self.winner


# The runtime that is the reference: its times stand beside those of others in the report.

REFERENCE: Final[RuntimeName] = "onnxruntime"
