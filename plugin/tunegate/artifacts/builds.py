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
    """The worst of one output over all seeds; relative error is to the largest magnitude of the
    reference output."""

    name: str
    max_absolute: float
    max_relative: float


class NumericCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The build against ONNX Runtime, over all outputs and seeds, and each output by itself.
    `reference_noise` is how far ONNX Runtime is from itself, None where that was not asked.
    `as_written`: the errors are to the model without ONNX Runtime's optimizations, which are off
    from it by more than may be allowed."""

    passed: bool
    max_absolute: float
    max_relative: float
    tolerance: float
    detail: str = ""
    outputs: tuple[OutputDifference, ...] = ()
    reference_noise: float | None = None
    as_written: bool = False


class WrongKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel whose schedule computes other numbers than its default one on what the model gives
    it: the largest error, absolute and relative to its largest output."""

    key: WorkloadKey
    shape: WorkloadShape
    toolchain: Toolchain
    name: str
    template: str
    decisions: tuple[Decision, ...]
    max_absolute: float
    max_relative: float


class BuiltTask(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of a built task. `rid` identifies the decisions ('' for the default schedule);
    `ms` is its measured time per call where one is known; a schedule that is not `verified` was
    transferred, picked by the prior or only claimed, and never measured. `algorithm` is set where
    its target asks for one and the task has it."""

    key: WorkloadKey
    name: str
    weight: int
    source: ScheduleSource
    rid: str
    ms: float | None
    verified: bool = True
    algorithm: str = ""


class CandidateTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one inference of a side under one candidate; `title` is the candidate's name in
    reports. `ms` is the median of its launches, `low_ms` and `high_ms` the least and the most of
    one; `error` is set for other numbers than float32. Of one that an earlier run measured in such
    numbers nothing tells the error: it `has_unknown_error`."""

    candidate: str
    title: str
    ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    error: ErrorEstimate | None = None
    has_unknown_error: bool = False


class RefusedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that a side cannot ship with; `reason` says why. `is_lasting`: another run would
    refuse it too, as neither time nor memory was missing. `error` is set where its
    budget of accuracy refuses it."""

    candidate: str
    title: str
    reason: str
    is_lasting: bool = False
    error: ErrorEstimate | None = None


class RuntimeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements and reasons behind the choice of a build's runtime: `times` of what was
    measured, `refused` candidates that do not run it, and in `reason` why the others were not
    measured. `is_complete`: another run would elect among the same, since nothing crashed or was
    too late; `is_cut_short`: nothing but the time was missing for that. `is_remembered`: an earlier
    run has measured the times."""

    times: tuple[CandidateTime, ...] = ()
    refused: tuple[RefusedCandidate, ...] = ()
    reason: str = ""
    is_complete: bool = False
    is_cut_short: bool = False
    is_remembered: bool = False

    def ms_of(self, candidate: str) -> float | None:
        return next((time.ms for time in self.times if time.candidate == candidate), None)


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a cell, compiled. `key` is the digest of all that decides the code and weights;
    `directory` is relative to `--out`. With `error` set nothing was shipped. `dropped` are kernels
    whose unmeasured schedule was slower inside the model than the default one, which they have now;
    `wrong_kernels` have it because theirs computes other numbers. `crashed`: its process died, did
    not end in time or lacked memory, which says less of the model than a refusal does. `digest` is
    that of its `artifact.json`, which has those of its files; '' where there is none.
    `is_needless`: its runtime has nothing to add to the others here, which `error` says. `choice`
    is set where there was one between runtimes. `without_graphs` is what went wrong with it on the
    device when it had CUDA graphs, `without_picks` when it had schedules that nobody had measured,
    `without_channels_last` when its images had their channels last; `notes` are what its runtime
    says of how it runs. `inputs` are what it is run on.
    `error_estimate` is set for other numbers than float32: one for each part of the budget;
    `sampled` is what it is estimated from, until then. `limits` is the
    budget of its model, whether or not this build is in other numbers. `how` is what times decided
    while it was built."""

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
        """Tells it from the other builds of its side."""
        return candidate_name(self.runtime, self.variant)


def unbuilt(reason: str, *, crashed: bool = False) -> Build:
    """A side of which nothing was built."""
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
    """Every build of a cell, one for each runtime that its target allows; a side without the model
    has none. Where an earlier run had too little time to elect, this one goes on: `first` is the
    candidate that led, and `earlier` has the times of those that lost to it, `refused` those that
    cannot ship: neither are built."""

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


# Errors of builds in lower precision against float32: on each input, and bounds for all inputs
# like them.

What = Literal["max-error", "min-agreement", "metric"]
"""The part of a budget, as the configuration calls it; a metric is the user's own."""


class SaturatedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output that is at a bound, such as 0 or 1, in `percent` of its elements: these show no
    error."""

    output: str
    percent: float


class SampledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors on each of the `inputs` that carry information: the largest error of its outputs
    `relative` to the largest magnitude of the output, and whether the largest value is in the same
    place. `saturated` are outputs that never tell one, `mostly_saturated` those that tell it in
    less than half of their elements. `one_place` are those that vary, and have their largest value
    in the same place on every input. `largest_of` is the output with the largest error, `disagrees`
    the one whose largest value moves most often; '' where none does. `telling` are the numbers of
    these inputs among all that were run, and `scores` what a command of the user's said of all of
    them, in that order."""

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
    """One part of a budget, in percent, or in the unit of a metric."""

    what: What
    limit: float

    @property
    def unit(self) -> str:
        return _unit(self.what)


class ErrorEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a build against float32, in percent or in the unit of a metric, over `samples`
    inputs, with 95% bounds for all inputs like them. `limit` is the budget, None where nobody said
    it; `output` the one that is off the most, '' where none is. `saturated` are outputs that are at
    their bounds, such as 0 and 1, or always the same: they show no error. Those of a min-agreement
    have their largest value in the same place on every input, too. `mostly_saturated` are at them
    in most elements; `silent` are inputs that tell nothing, beside the samples. `high` is None
    where the samples are too few for a bound."""

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
    """The error of the build that ships on one side: `title` is its candidate's name in reports.
    `estimates` has one for each part of the budget; none where it computes in float32."""

    title: str
    estimates: tuple[ErrorEstimate, ...] = ()


class ShippedErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of what ships, under a budget of accuracy; None for a side that ships nothing.
    `moved` are the parts of the budget by which the head is clearly less exact than the base, and
    not clearly faster. `limits` is the budget, of float32 too, which is always inside."""

    base: SideError | None = None
    head: SideError | None = None
    moved: tuple[What, ...] = ()
    limits: tuple[ErrorLimit, ...] = ()


def _unit(what: What) -> str:
    return "" if what == "metric" else "%"
