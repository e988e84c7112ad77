"""Compiled models and the check of their numbers."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.candidates import RuntimeName, candidate_name
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.inputs import DrawnInput
from tunegate.artifacts.tasks import ScheduleSource
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import Decision, Toolchain, WorkloadKey, WorkloadShape


class OutputDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The worst error of one output over all seeds. The relative error is relative to the largest
    magnitude of the reference output."""

    name: str
    max_absolute: float
    max_relative: float


class NumericCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The build against ONNX Runtime, over all outputs and seeds, and each output by itself.
    `reference_noise` is how far ONNX Runtime is from itself, None if not measured. `as_written`:
    the errors are against the model without ONNX Runtime's optimizations, because these are
    themselves off by more than is allowed."""

    passed: bool
    max_absolute: float
    max_relative: float
    tolerance: float
    detail: str = ""
    outputs: tuple[OutputDifference, ...] = ()
    reference_noise: float | None = None
    as_written: bool = False


class WrongKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel whose schedule computes other numbers than its default one on the model's values.
    The largest error is absolute, and relative to its largest output."""

    key: WorkloadKey
    shape: WorkloadShape
    toolchain: Toolchain
    name: str
    template: str
    decisions: tuple[Decision, ...]
    max_absolute: float
    max_relative: float


class BuiltTask(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a built task. `rid` identifies the decisions ('' for the default schedule).
    `ms` is its measured time per call, if known. A schedule that is not `verified` was transferred,
    picked by the prior or claimed, and never measured. `algorithm` is set if the target asks for
    one and the task has it."""

    key: WorkloadKey
    name: str
    weight: int
    source: ScheduleSource
    rid: str
    ms: float | None
    verified: bool = True
    algorithm: str = ""


class CandidateTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one inference of a side under one candidate. `title` is the candidate's name in
    reports. `ms` is the median of its launches, `low_ms` and `high_ms` the extremes. `error` is set
    for numbers other than float32; if an earlier run measured it there, it `has_unknown_error`."""

    candidate: str
    title: str
    ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    error: ErrorEstimate | None = None
    has_unknown_error: bool = False


class RefusedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that a side cannot ship with, and the `reason`. `is_lasting`: another run would
    refuse it too, because neither time nor memory was missing. `error` is set if its accuracy
    budget refuses it."""

    candidate: str
    title: str
    reason: str
    is_lasting: bool = False
    error: ErrorEstimate | None = None


class RuntimeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of a build's runtime. `times` are those measured, `refused` are candidates that
    do not run the model, `reason` is why the others were not measured. `is_complete`: another run
    would elect among the same candidates. `is_cut_short`: only time was missing for that.
    `is_remembered`: an earlier run measured the times."""

    times: tuple[CandidateTime, ...] = ()
    refused: tuple[RefusedCandidate, ...] = ()
    reason: str = ""
    is_complete: bool = False
    is_cut_short: bool = False
    is_remembered: bool = False

    def ms_of(self, candidate: str) -> float | None:
        return next((time.ms for time in self.times if time.candidate == candidate), None)


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a cell, compiled.

    `key` is the digest of all that decides code and weights. `directory` is relative to `--out`.
    `digest` is that of `artifact.json`, which has those of its files, '' without one. `inputs` are
    what it runs on. `choice` is set if there were several runtimes. `how` is what times decided
    during the build. `notes` are the runtime's remarks.

    With `error` set nothing shipped. `crashed`: the build's process died, hung or lacked memory,
    which says less of the model than a refusal. `is_needless`: its runtime adds nothing to the
    others here, as `error` says. `without_graphs`, `without_picks` and `without_channels_last` hold
    what went wrong on the device with CUDA graphs, with unmeasured schedules, and with channels
    last.

    `dropped` kernels have the default schedule because their unmeasured one was slower inside the
    model; `wrong_kernels` because theirs computes other numbers. `error_estimate` is set for
    numbers other than float32, one for each part of the budget; until then `sampled` has its data.
    `limits` is the model's budget, whatever this build's numbers are.
    """

    key: str
    directory: str
    tasks: tuple[BuiltTask, ...]
    check: NumericCheck | None
    error: str | None
    size_bytes: int
    seconds: float
    digest: str = ""
    dropped: tuple[str, ...] = ()
    without_graphs: str = ""
    without_picks: str = ""
    without_channels_last: str = ""
    wrong_kernels: tuple[WrongKernel, ...] = ()
    runtime: RuntimeName = ""
    variant: str = ""
    title: str = ""
    choice: RuntimeChoice | None = None
    crashed: bool = False
    inputs: tuple[DrawnInput, ...] = ()
    is_needless: bool = False
    error_estimate: tuple[ErrorEstimate, ...] = ()
    sampled: SampledErrors | None = None
    limits: tuple[ErrorLimit, ...] = ()
    notes: tuple[str, ...] = ()
    how: HowBuilt | None = None

    @property
    def candidate(self) -> str:
        """Its name among the builds of its side."""
        return candidate_name(self.runtime, self.variant)


def unbuilt(reason: str, *, crashed: bool = False) -> Build:
    """Returns a side of which nothing was built."""
    return Build(
        key="",
        directory="",
        tasks=(),
        check=None,
        error=reason,
        size_bytes=0,
        seconds=0.0,
        crashed=crashed,
    )


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one target."""

    model: ModelPath
    target: str


class CellCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """Every build of a cell, one for each allowed runtime; a side without the model has none. If an
    earlier election ran out of time, this one continues it: `first` led, `earlier` has the times of
    the losers, `refused` those that cannot ship. Losers and refused are not built."""

    cell: Cell
    base: tuple[Build, ...]
    head: tuple[Build, ...]
    first: str = ""
    earlier: tuple[CandidateTime, ...] = ()
    refused: tuple[RefusedCandidate, ...] = ()


class CellBuilds(msgspec.Struct, frozen=True, kw_only=True):
    cell: Cell
    base: Build | None
    head: Build | None


# Errors of builds in lower precision against float32: on each input, with bounds for all inputs
# like them.

What = Literal["max-error", "min-agreement", "metric"]
"""The part of a budget, named as in the configuration. A metric is the user's own."""


class SaturatedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output at a bound, such as 0 or 1, in `percent` of its elements, which show no error."""

    output: str
    percent: float


class SampledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors on each of the `inputs` that carry information: the largest error of its outputs
    `relative` to the output's largest magnitude, and whether the largest value is in the same
    place.

    `saturated` outputs never show an error, `mostly_saturated` ones in less than half of their
    elements. `one_place` outputs vary, but have their largest value in the same place on every
    input. `largest_of` has the largest error, `disagrees` is the output whose largest value moves
    most often; '' without one. `telling` are these inputs' numbers among all that ran. `scores` are
    a user command's scores of all of them, in that order.
    """

    relative: tuple[float, ...] = ()
    agrees: tuple[bool, ...] = ()
    saturated: tuple[str, ...] = ()
    one_place: tuple[str, ...] = ()
    largest_of: str = ""
    disagrees: str = ""
    inputs: int = 0
    mostly_saturated: tuple[SaturatedOutput, ...] = ()
    telling: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()


class ErrorLimit(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a budget, in percent or in the unit of a metric."""

    what: What
    limit: float

    @property
    def unit(self) -> str:
        return _unit(self.what)


class ErrorEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a build against float32, in percent or in the unit of a metric, over `samples`
    inputs, with 95% bounds for all inputs like them.

    `limit` is the budget, None without one. `output` is the one with the largest error, '' if none
    has any. `saturated` outputs are at their bounds, such as 0 and 1, or constant, and show no
    error; for min-agreement, outputs with their largest value always in the same place count as
    well. `mostly_saturated` are at a bound in most elements. `silent` inputs show nothing, beside
    the samples. `high` is None if the samples are too few for a bound.
    """

    what: What
    center: float
    low: float
    high: float | None
    samples: int
    saturated: tuple[str, ...] = ()
    limit: float | None = None
    output: str = ""
    silent: int = 0
    mostly_saturated: tuple[SaturatedOutput, ...] = ()

    @property
    def unit(self) -> str:
        return _unit(self.what)


class SideError(msgspec.Struct, frozen=True, kw_only=True):
    """The error of the build that ships on one side. `title` is its candidate's name in reports.
    `estimates` has one for each part of the budget, none for float32."""

    title: str
    estimates: tuple[ErrorEstimate, ...] = ()


class ShippedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of what ships under an accuracy budget, None for a side that ships nothing.
    `moved` are the parts by which the head is clearly less exact than the base, and not clearly
    faster. `limits` is the budget, which float32 always meets."""

    base: SideError | None = None
    head: SideError | None = None
    moved: tuple[What, ...] = ()
    limits: tuple[ErrorLimit, ...] = ()


def _unit(what: What) -> str:
    return "" if what == "metric" else "%"
