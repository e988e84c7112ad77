"""The steps of a planned run, and the expected time of each."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.candidates import FLOAT32, CandidateBuild, Candidates
from tunegate.artifacts.changes import SIDES, ModelChange, ModelPath, Side
from tunegate.artifacts.plans import ExpectedStep, Shard, TuningPlan
from tunegate.artifacts.tasks import RecordOrigin, ResolvedTask, TuningTask
from tunegate.config import BudgetConfig, Config, GateConfig, TargetConfig
from tunegate.measure.build_sides import built_together
from tunegate.measure.election import side_seconds
from tunegate.measure.error_budgets import is_tried
from tunegate.tune.expected_time import TargetKind, known_ms, prior_ms
from tunegate.tune.model_keys import ModelOnTarget, tasks_of_models
from tunegate.tune.prior_results import PriorResults
from tunegate.wording import plural
from tunegate_cache.format.records import Miss

_CANDIDATE_LAUNCHES = 2
"""The launches of a candidate in a usual election."""
_LATER = 0.25
"""The share of float32's time that a later build in other numbers takes: most kernels are compiled
by then."""
_ASKING_SECONDS, _REELECTION_SECONDS = 10.0, 5.0
"""The seconds that a search and its worker take to start, and those of a schedule and the default
beside it, built and timed."""
_STARTS_SECONDS, _INFERENCES = 30.0, 500
"""The seconds that processes of a usual gate take to start, and their inferences."""


class _Cell(msgspec.Struct, frozen=True):
    change: ModelChange
    target: TargetConfig
    tasks: tuple[ResolvedTask, ...]

    @property
    def place(self) -> ModelOnTarget:
        return self.change.path, self.target.name

    @property
    def is_compiled(self) -> bool:
        """True if a compiler takes any part of the model. Otherwise it refuses at once."""
        return bool(self.tasks)

    @property
    def side_count(self) -> int:
        return sum(getattr(self.change, side) is not None for side in SIDES)


def run_forecast(
    plan: TuningPlan, config: Config, candidates: Candidates, origin: RecordOrigin
) -> tuple[ExpectedStep, ...]:
    """Returns the steps of a run on this machine, the `origin` of its records, in order. The
    seconds are a guess for people; the caps are the budget's and the gate's."""
    cells = _cells(plan, config)
    winners = {
        (election.model, election.target): election.winner
        for election in plan.elections
        if not election.is_cut_short
    }
    unknown = [cell for cell in cells if cell.place not in winners]
    cells_with_base = [cell for cell in cells if cell.change.base is not None]
    steps = (
        _tuning(plan.shards, origin),
        _building(cells, config, candidates, winners),
        _choosing(unknown, config, candidates),
        _measuring(cells_with_base, config.gate),
    )
    return tuple(step for step in steps if step is not None)


def warm_forecast(
    plan: TuningPlan,
    config: Config,
    candidates: Candidates,
    origin: RecordOrigin,
    elections: Collection[ModelOnTarget],
) -> tuple[ExpectedStep, ...]:
    """Returns the steps of `warm`, which builds what it tunes and what is not elected. None if the
    cache has everything."""
    tuned_models = {
        use.model
        for shard in plan.shards
        for task in shard.tasks
        if task.trials
        for use in task.resolved.task.uses
    }
    places = {*elections}
    models = tuple(
        change
        for change in plan.changes.models
        if change.path in tuned_models or {(change.path, name) for name in change.targets} - places
    )
    changes = msgspec.structs.replace(plan.changes, models=models)
    plan = msgspec.structs.replace(plan, changes=changes)
    return run_forecast(plan, config, candidates, origin)


def _cells(plan: TuningPlan, config: Config) -> list[_Cell]:
    tasks = tasks_of_models(plan.resolution.tasks)
    return [
        _Cell(change, target, tuple(tasks.get((change.path, target.name), ())))
        for target in config.targets
        for change in plan.changes.models
        if target.name in change.targets and change.head is not None
    ]


def _tuning(shards: Sequence[Shard], origin: RecordOrigin) -> ExpectedStep | None:
    """Returns a step for the schedules of an older toolchain that are measured again, and for the
    search."""
    reelections = {shard.index: reelected_tasks(shard, origin) for shard in shards}
    paid = [s for s in shards if reelections[s.index] or any(task.trials for task in s.tasks)]
    if not paid:
        return None
    seconds = [_tuning_seconds(shard, reelections[shard.index]) for shard in paid]
    usd = sum(
        part / 3600 * (shard.budget.usd_per_hour or 0.0)
        for part, shard in zip(seconds, paid, strict=True)
    )
    work = []
    if older := sum(reelections.values()):
        work.append(f"measure {plural(older, 'schedule')} of an older toolchain again")
    if tasks := sum(task.trials > 0 for shard in paid for task in shard.tasks):
        work.append(f"tune {plural(tasks, 'task')}")
    price = f" ({usd:.2g} USD)" if usd else ""
    has_cap = [shard.budget.seconds for shard in paid] == seconds
    within = "at most" if has_cap else "about"
    text = f"{' and '.join(work)} in {within} {sum(seconds):.0f} s{price}"
    return ExpectedStep("tune", (sum(seconds),), text, has_cap=has_cap)


def reelected_tasks(shard: Shard, origin: RecordOrigin) -> int:
    """Returns the number of tasks that the shard re-elects on this machine."""
    if shard.budget.pays_nothing:
        return 0
    results = (PriorResults(task, origin.device, origin.toolchain) for task in shard.tasks)
    count = sum(result.is_outdated for result in results)
    return count if shard.budget.trials is None else min(count, shard.budget.trials)


def _tuning_seconds(shard: Shard, reelections: int) -> float:
    """Returns the cap of a search, which takes all of it; a re-election alone ends earlier."""
    cap = math.inf if shard.budget.seconds is None else shard.budget.seconds
    asking = _ASKING_SECONDS + reelections * _REELECTION_SECONDS if reelections else 0.0
    if any(task.trials for task in shard.tasks):
        return shard.predicted_seconds + asking if math.isinf(cap) else cap
    return min(asking, cap)


def _building(
    cells: Sequence[_Cell],
    config: Config,
    candidates: Candidates,
    winners: Mapping[ModelOnTarget, str],
) -> ExpectedStep | None:
    """Returns a step with a part for each group of candidates built together. A model with a
    remembered election has its winner alone."""
    parts = []
    for group in built_together(candidates):
        jobs = [
            _job_seconds(cell, candidate, is_alone=cell.place in winners)
            for cell in cells
            for candidate in group
            if candidate in candidates[cell.target.name]
            if cell.is_compiled or not candidate.is_tuned
            if is_tried(
                config, Cell(model=cell.change.path, target=cell.target.name), candidate, candidates
            )
            if winners.get(cell.place, candidate.name) == candidate.name
        ]
        if jobs:
            parts.append(sum(jobs))
    if not parts:
        return None
    return ExpectedStep("build", tuple(parts), f"build {_models(cells)}", _subject(cells))


def _job_seconds(cell: _Cell, candidate: CandidateBuild, *, is_alone: bool) -> float:
    """Returns the seconds of a candidate. In other numbers it is built after float32 and reuses its
    kernels."""
    if candidate.is_tuned:
        once = building_seconds(cell.change, [task.task for task in cell.tasks])
        is_later = candidate.precision != FLOAT32 and not is_alone
        return (_LATER if is_later else 1.0) * once
    return OPENING_SECONDS * cell.side_count


def _choosing(
    cells: Sequence[_Cell], config: Config, candidates: Candidates
) -> ExpectedStep | None:
    """Returns a step with a part for each side with a choice: launches of each challenger beside
    the leader."""
    open_cells = [each for each in cells if len(candidates[each.target.name]) > 1]
    if not open_cells:
        return None
    most = side_seconds(config.gate.seconds, config.gate.election_share)
    parts: list[float] = []
    for each in open_cells:
        cell = Cell(model=each.change.path, target=each.target.name)
        builds = [
            candidate
            for candidate in candidates[each.target.name]
            if is_tried(config, cell, candidate, candidates)
        ]
        launches = _CANDIDATE_LAUNCHES * max(1, len(builds) - 1)
        parts += [min(most, launches * LAUNCH_SECONDS)] * each.side_count
    return ExpectedStep("choose", tuple(parts), "choose what ships", _subject(open_cells))


def _measuring(cells: Sequence[_Cell], gate: GateConfig) -> ExpectedStep | None:
    if not cells:
        return None
    parts = tuple(_measuring_seconds(cell, gate) for cell in cells)
    return ExpectedStep("measure", parts, f"measure {_models(cells)}", _subject(cells))


def _measuring_seconds(cell: _Cell, gate: GateConfig) -> float:
    """Returns the seconds of measuring. Starts dominate for small models. Unmeasured tasks count as
    0, because the default schedules behind their estimate are seldom what is built."""
    hits = [task for task in cell.tasks if not isinstance(task.lookup, Miss)]
    head_ms = sum(
        use.weight * known_ms(hit, cell.target.kind)
        for hit in hits
        for use in hit.task.uses
        if (use.model, use.side) == (cell.change.path, "head")
    )
    return min(2 * gate.seconds, _STARTS_SECONDS + _INFERENCES * head_ms / 1e3)


def _models(cells: Sequence[_Cell]) -> str:
    return plural(len({cell.change.path for cell in cells}), "model")


def _subject(cells: Sequence[_Cell]) -> str:
    return ", ".join(f"{cell.change.path} on {cell.target.name}" for cell in cells)


# The expected time to build and measure one model on one target. It is rough: it decides which
# runner measures what, and is shown to people. The figures are from one small machine.

SIDE_SECONDS = 4.0
"""Seconds for one side: start a compiler, check the numbers, choose the runtime."""
TASK_SECONDS = 0.4
"""Seconds that a kernel of one side adds."""
OPENING_SECONDS = 0.6
"""Seconds for one side of a model under a candidate that compiles nothing."""
LAUNCH_SECONDS = 3.0
"""Seconds for two processes to start, load and warm up."""
BLOCK_INFERENCES = 20
"""The inferences of one side in one block."""
EXPECTED_LAUNCHES = 10
"""The launches that decide a usual change, probes included."""


def expected_seconds(
    change: ModelChange, tasks: Iterable[TuningTask], kind: TargetKind, gate: GateConfig
) -> float:
    """Returns the time of building, and of measuring."""
    shard_tasks = tuple(tasks)
    return building_seconds(change, shard_tasks) + measuring_seconds(
        change, shard_tasks, kind, gate
    )


def building_seconds(change: ModelChange, tasks: Iterable[TuningTask]) -> float:
    """Returns the time to compile and check all sides of a model."""
    sides = {
        (task.key, use.side) for task in tasks for use in task.uses if use.model == change.path
    }
    return SIDE_SECONDS * len(_present_sides(change)) + TASK_SECONDS * len(sides)


def measuring_seconds(
    change: ModelChange, tasks: Iterable[TuningTask], kind: TargetKind, gate: GateConfig
) -> float:
    """Returns the time of measuring, within what the gate may spend. A model without a base is run
    a few times."""
    mine = [task for task in tasks if any(use.model == change.path for use in task.uses)]
    sides = _present_sides(change)
    inference_seconds = sum(_inference_seconds(mine, change.path, side, kind) for side in sides)
    if "base" not in sides:
        return BLOCK_INFERENCES * inference_seconds
    launch = LAUNCH_SECONDS + gate.pairs * BLOCK_INFERENCES * inference_seconds
    return min(gate.seconds * (2 if gate.extend else 1), EXPECTED_LAUNCHES * launch)


def _present_sides(change: ModelChange) -> list[Side]:
    return [side for side in SIDES if getattr(change, side) is not None]


def _inference_seconds(
    tasks: Sequence[TuningTask], path: ModelPath, side: Side, kind: TargetKind
) -> float:
    return sum(
        use.weight * prior_ms(task, kind) / 1e3
        for task in tasks
        for use in task.uses
        if (use.model, use.side) == (path, side)
    )


# Time limits of children, by the budgets that the user gave.

_BUILD_GRACE_SECONDS, _MAX_BUILD_SECONDS = 300.0, 900.0
_ANSWER_GRACE_SECONDS, _MAX_ANSWER_SECONDS = 30.0, 120.0


def build_seconds(budget: BudgetConfig) -> float:
    """Returns the limit for one model at one step of a compiler: the tuning minutes plus five, at
    most a quarter of an hour."""
    if budget.minutes is None:
        return _MAX_BUILD_SECONDS
    return min(60 * budget.minutes + _BUILD_GRACE_SECONDS, _MAX_BUILD_SECONDS)


def answer_seconds(gate: GateConfig) -> float:
    """Returns the limit for a measuring process to start, or to time one block: its cell's seconds
    plus half a minute, at most two minutes."""
    return min(gate.seconds + _ANSWER_GRACE_SECONDS, _MAX_ANSWER_SECONDS)
