"""The decision, and the report that explains it."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, PolicyChange, Revisions
from tunegate.artifacts.cost import EnergySource
from tunegate.artifacts.error_estimates import ErrorEstimate, ShippedErrors
from tunegate.artifacts.input_rules import DrawnInput
from tunegate.artifacts.measurements import (
    Comparison,
    EnergyChange,
    Excluded,
    Inside,
    Interval,
    MeasurementRun,
    TaskDifference,
)
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.waivers import WaiverOffer

Status = Literal[
    "pass", "fail", "inconclusive", "new", "error", "invalid-env", "no-baseline", "waived"
]


class CandidateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one candidate for the head. `ms` is set where several were measured, with the
    least and the most of one launch; `reason` says why it does not run the model, or why the one
    that ships was not measured. `error` is set for other numbers than float32, unless it
    `has_unknown_error`: then an earlier run measured it."""

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
    """The result of one cell; `remarks` is the part of `reason` beside the change of the median
    latency: all of it where that is not what decides. `inside` are the mean and the tail beside the
    median, `excluded` the slow launches that there are not: what was not resolvable, or not shown,
    is told there. `inputs` are what the head was run on; `runtimes` are all its candidates, and
    what is wrong with those that do not ship. `accuracy` is set for models with a budget of it,
    `energy` where something tells the joules of an inference."""

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


class TuningSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`exact`, `transfer` and `miss` are what the cache had as the run began; `unfinished` of the
    transfers are what an earlier run began. Afterwards the `tasks` are in six parts: `exact` were
    known before, `tuned` in this run; of `measured` it timed the default schedule alone, as no
    trial paid; `begun` have trials and no answer; `waiting` are shared by both sides, and left to
    `tunegate warm`; the rest is not tuned. `joules` are set where counters tell them."""

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
    joules: float | None = None
    energy_source: EnergySource | None = None


class Named(msgspec.Struct, frozen=True):
    """A name of a model, a target or a layer inside a sentence."""

    text: str


class NextStep(msgspec.Struct, frozen=True):
    """A sentence on what to do, in pieces: a rendering may draw the names as code."""

    pieces: tuple[str | Named, ...]

    @property
    def text(self) -> str:
        """The sentence as one text."""
        return "".join(each.text if isinstance(each, Named) else each for each in self.pieces)


class VerdictOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a verdict: digests of the plan, of `measurements.json` and of the rules (''
    where there is none), and the machine, by a name that lasts until it restarts. Where several
    measured, `machine` has the names of all."""

    plan: str = ""
    measurements: str = ""
    rules: str = ""
    machine: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `verdict.json`. `seed` is that of the measurements, '' where there are
    none. `policy_changes` are what the change does to the rules of its own gate, and
    `policy_fails` whether it fails for that."""

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
    """Everything the renderers need, and nothing they must compute."""

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
