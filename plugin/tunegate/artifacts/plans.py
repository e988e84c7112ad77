"""The price of work, in time, money and energy."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.candidates import RememberedElection
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.tasks import Resolution, ResolvedTask

EnergySource = Literal["rapl", "nvml", "rapl+nvml"]
"""The source of joules: counters of the processors, of the GPU, or of both."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A cost; `usd` is None without a configured price, `joules` without a counter."""

    seconds: float
    usd: float | None = None
    joules: float | None = None
    energy_source: EnergySource | None = None


# The plan of tuning: budget, tasks and shards.


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The cap, resolved: None is no limit of that kind. `seconds` already includes money, and so
    does `min_gain_percent_per_minute`. `target_ms` is the latency at which each model is fast
    enough: of a shard, what its tasks may take of it. `trials_per_task` are those of each."""

    seconds: float | None
    trials: int | None
    usd: float | None = None
    usd_per_hour: float | None = None
    min_gain_percent_per_minute: float = 0.5
    target_ms: dict[str, float] = {}
    trials_per_task: int | None = None


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """`trials` is the share of the budget; 0 with an exact hit. `gain_ms` is the expected
    end-to-end saving that ordered the shares. A task that `is_unpaid` matters, and the budget has
    no trials for it."""

    resolved: ResolvedTask
    trials: int
    gain_ms: float
    is_unpaid: bool = False


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks and the budget of one runner. `labels` choose the runner; `predicted_seconds`
    balanced the shards."""

    index: int
    target: str
    labels: tuple[str, ...]
    tasks: tuple[PlannedTask, ...]
    budget: Budget
    predicted_seconds: float


class MeasuringShard(msgspec.Struct, frozen=True, kw_only=True):
    """The models that one runner builds and measures. `labels` choose the runner;
    `predicted_seconds` balanced the shards."""

    index: int
    target: str
    labels: tuple[str, ...]
    models: tuple[ModelPath, ...]
    predicted_seconds: float


class PlanOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a plan: the version of this product, and the digests of `changes.json`, of
    `tasks.json` and of the judging configuration."""

    version: str
    changes: str
    tasks: str
    config: str


class TuningPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `plan.json`. `estimate` is what the shards are expected to cost
    before anything is spent; `saved` is the least that tuning took of what the cache had exact
    records of, by the times in these, and `saved_trials` how many candidates they are.
    `measuring` are the shards of the gate, where several runners measure; `elections` are those
    that are not held again."""

    schema: Literal[2] = 2
    changes: ChangeSet
    resolution: Resolution
    shards: tuple[Shard, ...]
    budget: Budget
    estimate: Cost
    saved: Cost | None = None
    saved_trials: int = 0
    origin: PlanOrigin | None = None
    notes: tuple[str, ...] = ()
    measuring: tuple[MeasuringShard, ...] = ()
    elections: tuple[RememberedElection, ...] = ()


# The steps that a run is expected to take once it has a plan.

StepKind = Literal["tune", "build", "choose", "measure"]
"""The steps that take most of the time, in their order."""


class ExpectedStep(msgspec.Struct, frozen=True):
    """A future step: what it does, and the expected seconds of each of its parts, in order. Steps
    of equal kind and `subject` take about as long in the next run on the same machine. One with a
    cap ends by it at the latest, and may long before."""

    kind: StepKind
    parts: tuple[float, ...]
    text: str
    subject: str = ""
    has_cap: bool = False

    @property
    def seconds(self) -> float:
        return sum(self.parts)
