"""What a run does once it is planned, and about how long each step takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tunegate.artifacts.changes import SIDES, ModelChange
from tunegate.artifacts.expected_steps import ExpectedStep
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import Config, GateConfig, TargetConfig
from tunegate.measuring.election import side_seconds
from tunegate.measuring.expected_seconds import LAUNCH_SECONDS, building_seconds
from tunegate.plurals import plural
from tunegate.tuning.expected_time import known_ms
from tunegate_cache.format.records import Miss

_CANDIDATE_LAUNCHES = 2
"""The launches of a candidate in a usual election."""
_STARTS_SECONDS, _INFERENCES = 30.0, 500
"""The seconds that the processes of a usual gate take to start, and the inferences of them all."""


class _Cell(msgspec.Struct, frozen=True):
    change: ModelChange
    target: TargetConfig
    tasks: tuple[ResolvedTask, ...]

    @property
    def sides(self) -> int:
        return sum(getattr(self.change, side) is not None for side in SIDES)


def run_forecast(planned: TuningPlan, config: Config) -> tuple[ExpectedStep, ...]:
    """The steps of a run on this machine, in their order. Its seconds are a guess for people; the
    caps are the budget's and the gate's."""
    cells = _cells(planned, config)
    known = {(each.model, each.target) for each in planned.elections}
    unknown = [each for each in cells if (each.change.path, each.target.name) not in known]
    compared = [each for each in cells if each.change.base is not None]
    steps = (
        _tuning(planned.shards),
        _building(cells),
        _choosing(unknown, config.gate),
        _measuring(compared, config.gate),
    )
    return tuple(step for step in steps if step is not None)


def _cells(planned: TuningPlan, config: Config) -> list[_Cell]:
    tasks = planned.resolution.tasks
    return [
        _Cell(change, target, tuple(each for each in tasks if each.task.target == target.name))
        for target in config.targets
        for change in planned.changes.models
        if target.name in change.targets and change.head is not None
    ]


def _tuning(shards: Iterable[Shard]) -> ExpectedStep | None:
    paid = [shard for shard in shards if any(task.trials for task in shard.tasks)]
    if not paid:
        return None
    seconds = sum(_tuning_seconds(shard) for shard in paid)
    usd = sum(_tuning_seconds(each) / 3600 * (each.budget.usd_per_hour or 0.0) for each in paid)
    tasks = sum(task.trials > 0 for shard in paid for task in shard.tasks)
    price = f" ({usd:.2g} USD)" if usd else ""
    text = f"tune {plural(tasks, 'task')} in at most {seconds:.0f} s{price}"
    return ExpectedStep("tune", seconds, text)


def _tuning_seconds(shard: Shard) -> float:
    return shard.predicted_seconds if shard.budget.seconds is None else shard.budget.seconds


def _building(cells: Sequence[_Cell]) -> ExpectedStep | None:
    if not cells:
        return None
    seconds = sum(
        building_seconds(each.change, [known.task for known in each.tasks]) for each in cells
    )
    return ExpectedStep("build", seconds, f"build {_models(cells)}")


def _choosing(cells: Sequence[_Cell], gate: GateConfig) -> ExpectedStep | None:
    if not cells:
        return None
    most = side_seconds(gate.seconds, gate.election_share)
    one = min(most, _CANDIDATE_LAUNCHES * LAUNCH_SECONDS)
    return ExpectedStep("choose", one * sum(each.sides for each in cells), "choose what ships")


def _measuring(cells: Sequence[_Cell], gate: GateConfig) -> ExpectedStep | None:
    if not cells:
        return None
    seconds = sum(_measuring_seconds(each, gate) for each in cells)
    return ExpectedStep("measure", seconds, f"measure {_models(cells)}")


def _measuring_seconds(cell: _Cell, gate: GateConfig) -> float:
    """Starts take most of the time of a small model. What nobody has measured counts as nothing:
    the default schedules that it is estimated by are seldom what is built."""
    known = [each for each in cell.tasks if not isinstance(each.lookup, Miss)]
    head_ms = sum(
        use.weight * known_ms(each, cell.target.kind)
        for each in known
        for use in each.task.uses
        if (use.model, use.side) == (cell.change.path, "head")
    )
    return min(2 * gate.seconds, _STARTS_SECONDS + _INFERENCES * head_ms / 1e3)


def _models(cells: Sequence[_Cell]) -> str:
    return plural(len({each.change.path for each in cells}), "model")
