"""The plan of a run: the budget, tasks and shards of tuning, the shards of measuring, and what it
all costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from tunegate.artifacts.candidates import RememberedElection
from tunegate.artifacts.changes import ChangeSet, ModelPath
from tunegate.artifacts.tasks import Resolution, ResolvedTask

# The price of work, in time, money and energy.

EnergySource = Literal["rapl", "nvml", "rapl+nvml"]
"""The source of joules: counters of the processors, of the GPU, or of both."""
SECONDS_PER_HOUR = 3600.0


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A cost; `usd` is None without a configured price, `joules` without a counter."""

    seconds: float
    usd: float | None = None
    joules: float | None = None
    energy_source: EnergySource | None = None


class TotalEnergy(NamedTuple):
    """A sum of joules and its counters, None if one part is unknown."""

    joules: float | None
    source: EnergySource | None


NOT_COUNTED = TotalEnergy(None, None)


def total_energy(costs: Sequence[Cost]) -> TotalEnergy:
    """Returns the sum. Of several sources the first is named."""
    joules = [cost.joules for cost in costs if cost.joules is not None]
    if not costs or len(joules) < len(costs):
        return NOT_COUNTED
    return TotalEnergy(sum(joules), costs[0].energy_source)


# The plan of tuning: budget, tasks and shards.


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The resolved cap. None is no limit of that kind. `seconds` already includes money, and so
    does `min_gain_percent_per_minute`. `target_ms` is the latency at which each model is fast
    enough; in a shard, the part for its tasks. `trials_per_task` limits each task."""

    seconds: float | None
    trials: int | None
    usd: float | None = None
    usd_per_hour: float | None = None
    min_gain_percent_per_minute: float = 0.5
    target_ms: dict[str, float] = {}
    trials_per_task: int | None = None

    @property
    def pays_nothing(self) -> bool:
        return self.trials == 0 or self.seconds == 0

    def remaining_after(self, seconds: float, trials: int) -> Budget:
        """Returns what is left after this much."""
        return msgspec.structs.replace(
            self,
            seconds=None if self.seconds is None else max(0.0, self.seconds - seconds),
            trials=None if self.trials is None else max(0, self.trials - trials),
        )


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """`trials` is the share of the budget, 0 with an exact hit. `gain_ms` is the expected
    end-to-end saving that ordered the shares. `is_unpaid`: the task matters, and the budget has no
    trials for it."""

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
    """A plan's origin: the version of this product, and the digests of `changes.json`, `tasks.json`
    and the judging configuration."""

    version: str
    changes: str
    tasks: str
    config: str


class TuningPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `plan.json`. `estimate` is the expected cost of the shards. `saved` is a lower
    bound on what tuning the exact hits took, by the times in their records, and `saved_trials`
    their number of candidates. `measuring` are the gate's shards if several runners measure.
    `elections` are not held again."""

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


# The steps that a run is expected to take after its plan.

StepKind = Literal["tune", "build", "choose", "measure"]
"""The steps that take most of the time, in order."""


class ExpectedStep(msgspec.Struct, frozen=True):
    """A future step: what it does, and the expected seconds of each of its parts, in order. Steps
    of equal kind and `subject` take about as long in the next run on the same machine. A step with
    a cap ends by it at the latest, often long before."""

    kind: StepKind
    parts: tuple[float, ...]
    text: str
    subject: str = ""
    has_cap: bool = False

    @property
    def seconds(self) -> float:
        return sum(self.parts)
