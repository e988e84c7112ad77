"""The verdict, the report that explains it, and the waivers that let a slowdown pass."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tunegate import errors
from tunegate.artifacts.builds import Cell, ErrorEstimate, ShippedErrors
from tunegate.artifacts.changes import ChangeSet, ModelPath, PolicyChange, Revisions, path_of
from tunegate.artifacts.inputs import DrawnInput
from tunegate.artifacts.measurements import (
    Comparison,
    EnergyChange,
    Excluded,
    Inside,
    Interval,
    LayersChange,
    LoadChange,
    MeasurementRun,
    TaskDifference,
)
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import EnergySource, TuningPlan
from tunegate.artifacts.tasks import CacheUse

# Slowdowns that someone has agreed to, for a while.

WAIVERS_FILE = "tunegate-waivers.yaml"


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One cell may be slower, up to `ceiling_percent` and through the day `expires`. A model's path
    stands for all its profiles."""

    model: ModelPath
    target: str
    ceiling_percent: float
    expires: datetime.date
    issue: str
    reason: str

    @property
    def cell(self) -> Cell:
        return Cell(model=self.model, target=self.target)


ISSUE_TO_WRITE = "<the address of the issue>"
REASON_TO_WRITE = "<why this slowdown is accepted>"
"""Placeholders for issue and reason in an offered waiver. A file that still has them is refused."""


class WaiverOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Waivers that would make a red verdict pass once issue and reason are filled in. Cells in
    `filed` have an entry in the file already, to be changed. `has_wider`: a whole model has an
    entry, and a profile of it has none. `is_unread`: the file cannot be read and may have any.
    `counts_from` tells whose file counts."""

    waivers: tuple[Waiver, ...]
    counts_from: Literal["base", "head"]
    filed: tuple[Cell, ...] = ()
    is_unread: bool = False
    has_wider: bool = False


def waiver_of(waivers: Sequence[Waiver], cell: Cell) -> Waiver | None:
    """Returns the waiver of a cell: its own, or its model's if it is a profile."""
    return waivers_of_cells(waivers, (cell,))[cell]


def waivers_of_cells(waivers: Sequence[Waiver], cells: Iterable[Cell]) -> dict[Cell, Waiver | None]:
    """Returns the waiver of each cell, None for a cell without one."""
    by_cell = {waiver.cell: waiver for waiver in waivers}
    return {
        cell: by_cell.get(cell) or by_cell.get(Cell(model=path_of(cell.model), target=cell.target))
        for cell in cells
    }


# The decision, and the report that explains it.

Status = Literal[
    "pass", "fail", "inconclusive", "new", "error", "invalid-env", "no-baseline", "waived"
]


class CandidateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one candidate for the head. `ms` is set if several were measured, with the
    extremes of its launches. `reason` is why it does not run the model, or why the one that ships
    was not measured. `error` is set for numbers other than float32, unless an earlier run measured
    it: then it `has_unknown_error`."""

    candidate: str
    title: str
    ships: bool
    ms: float | None = None
    reason: str = ""
    low_ms: float | None = None
    high_ms: float | None = None
    error: ErrorEstimate | None = None
    has_unknown_error: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one cell. `remarks` is the part of `reason` beside the change of the median
    latency, or all of it if the median does not decide. `inside` has the mean and the tail,
    `excluded` the slow launches ruled out. `inputs` are what the head ran on. `runtimes` are all
    its candidates, with what is wrong with those that do not ship. `accuracy` is set under an
    accuracy budget, `energy` if something counts the joules of an inference, `load` and
    `layers` (those that differ) under a margin of their own."""

    model: ModelPath
    target: str
    status: Status
    reason: str
    remarks: str = ""
    base_ms: float | None
    head_ms: float | None
    reference_ms: float | None
    change_percent: Interval | None
    launches: int
    differences: tuple[TaskDifference, ...] = ()
    inside: tuple[Inside, ...] = ()
    excluded: Excluded | None = None
    inputs: tuple[DrawnInput, ...] = ()
    runtimes: tuple[CandidateOutcome, ...] = ()
    accuracy: ShippedErrors | None = None
    energy: EnergyChange | None = None
    load: LoadChange | None = None
    layers: LayersChange | None = None

    @property
    def cell(self) -> Cell:
        return Cell(model=self.model, target=self.target)


class TuningSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`exact`, `transfer` and `miss` are the cache's answers when the run began; `unfinished`
    transfers were begun by an earlier run. Afterwards the `tasks` are in six parts: `exact` were
    known before, `tuned` in this run, `measured` had only the default schedule timed because no
    trial paid, `begun` have trials and no answer, `waiting` are shared by both sides and left to
    `tunegate warm`, the rest is not tuned. Of the `exact`, `tried_again` had trials: to search
    where the default schedule had won, or for a claim. Of the `exact`, an older toolchain's
    schedules were `kept`, `lost` to the default schedules, are slower than these as before
    (`still_lost`), or are `not_asked` yet, and no answer until then.
    `joules` are set if counters exist."""

    tasks: int
    exact: int
    transfer: int
    miss: int
    trials: int
    seconds: float
    usd: float | None
    stopped: str
    tuned: int = 0
    measured: int = 0
    begun: int = 0
    waiting: int = 0
    unfinished: int = 0
    kept: int = 0
    lost: int = 0
    still_lost: int = 0
    not_asked: int = 0
    tried_again: int = 0
    joules: float | None = None
    energy_source: EnergySource | None = None


class Named(msgspec.Struct, frozen=True):
    """The name of a model, a target or a layer inside a sentence."""

    text: str


class NextStep(msgspec.Struct, frozen=True):
    """A sentence on what to do, in pieces, so that a rendering may show the names as code."""

    pieces: tuple[str | Named, ...]

    @property
    def text(self) -> str:
        """The sentence as one text."""
        return "".join(piece.text if isinstance(piece, Named) else piece for piece in self.pieces)


class VerdictOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict's origin: digests of the plan, of `measurements.json` and of the rules ('' without
    one), and the machine by a name that lasts until it restarts. If several measured, `machine` has
    all names. `judged_at` is in seconds since 1970, 0 if unknown. `gate` is the judging section of
    the configuration and `targets` its targets by name, each with all keys as the file writes
    them."""

    plan: str = ""
    measurements: str = ""
    rules: str = ""
    machine: str = ""
    judged_at: int = 0
    gate: Mapping[str, Any] = {}
    targets: Mapping[str, Mapping[str, Any]] = {}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `verdict.json`. `seed` is that of the measurements, '' without any.
    `policy_changes` are what the change does to the rules of its own gate; `policy_fails` tells
    whether it fails for that."""

    schema: Literal[1] = 1
    status: Status
    exit_code: int
    findings: tuple[Finding, ...]
    tuning: TuningSummary
    margin_percent: float
    revisions: Revisions
    notes: tuple[str, ...] = ()
    seed: str = ""
    policy_changes: tuple[PolicyChange, ...] = ()
    policy_fails: bool = False
    origin: VerdictOrigin = VerdictOrigin()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that renderers need. They compute nothing."""

    verdict: Verdict
    changes: ChangeSet
    plan: TuningPlan | None
    outcomes: tuple[TuningOutcome, ...]
    run: MeasurementRun | None
    comparisons: tuple[Comparison, ...]
    cache: CacheUse | None
    next_steps: tuple[NextStep, ...] = ()
    warnings: tuple[str, ...] = ()
    waiver_offer: WaiverOffer | None = None


# The result of `tunegate warm`.


class WarmedModel(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a model's tasks that the cache knew before, and knows now. Of `measured` tasks
    only the default schedule was timed, without a trial."""

    model: ModelPath
    target: str
    tasks: int
    known_before: int
    known: int
    measured: int = 0


class WarmedShipping(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate that a model ships with. `title` is its name in reports. `estimates` are its
    errors under an accuracy budget; `is_drawn`: no given inputs to measure them on.
    `has_unknown_error`: it computes in numbers other than float32 and this run built nothing.
    `is_remembered`: an earlier run chose it. `reason` is why nothing ships, else ''. `trouble`
    names candidates that died, and what this one was built without."""

    model: ModelPath
    target: str
    title: str = ""
    estimates: tuple[ErrorEstimate, ...] = ()
    is_drawn: bool = False
    has_unknown_error: bool = False
    is_remembered: bool = False
    reason: str = ""
    trouble: tuple[str, ...] = ()


class Warmed(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `warm.json`. `left` counts the tasks that a later run continues.
    `is_published` is False if records could not be delivered; they wait on this machine."""

    schema: Literal[1] = 1
    zone: str
    models: tuple[WarmedModel, ...]
    left: int
    is_published: bool
    tuning: TuningSummary
    notes: tuple[str, ...] = ()
    ships: tuple[WarmedShipping, ...] = ()


# The worst of several statuses, and the exit code of each.

# A wrong or failed build comes first, then a proven regression: nothing that is undecided about
# another model hides either.
SEVERITY: tuple[Status, ...] = (
    "error", "fail", "invalid-env", "no-baseline", "inconclusive", "waived", "new", "pass",
)  # fmt: skip
EXIT_CODES: dict[Status, int] = {
    "error": errors.USAGE,
    "fail": errors.FAIL,
    "invalid-env": errors.UNFIT,
    "no-baseline": errors.NO_BASELINE,
    "inconclusive": errors.INCONCLUSIVE,
    "waived": errors.PASS,
    "new": errors.PASS,
    "pass": errors.PASS,
}


def worst_status(statuses: Sequence[Status]) -> Status:
    return min(statuses, key=SEVERITY.index, default="pass")
