"""Resolution -> TuningPlan: what to tune, where, and within which limits, before anything is
spent."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts.plans import SECONDS_PER_HOUR, Budget, Cost, PlannedTask, Shard, TuningPlan
from tunegate.artifacts.tasks import Resolution, ResolvedTask, TaskSet, TuningTask
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.plan import allocation
from tunegate.tune import expected_time
from tunegate.tune.budget import budget_of, parts_of_target
from tunegate.tune.claims import waiting_note
from tunegate.wording import plural
from tunegate_cache.format.records import ExactHit, Miss

MAX_SHARDS = 256
"""The most jobs that a CI run takes from one matrix."""
TRIALS_WITHOUT_LIMIT = 256
"""The trials planned per task if neither time nor money nor trials are limited."""


def plan(
    task_set: TaskSet,
    resolution: Resolution,
    config: Config,
    *,
    shards: int | None = None,
    unmerged: Collection[str] = (),
) -> TuningPlan:
    """Returns the plan of a whole run. All shards share its money and trials. With `shards` they
    run side by side, each for at most `budget.minutes`, but those of the `unmerged` targets for
    that long together. Without, each target has one, they run in turn and share the minutes as
    well."""
    tasks = _with_misses(task_set, resolution)
    planned = _plan_shards(tasks, config, shards, unmerged)
    kinds = {target.name: target.kind for target in config.targets}
    return TuningPlan(
        changes=task_set.changes,
        resolution=resolution,
        shards=planned,
        budget=_whole_budget(planned, config, side_by_side=shards is not None),
        estimate=estimated_cost(planned),
        saved=cost_of_hits(planned, kinds),
        saved_trials=trials_of_hits(planned),
        notes=(*_notes(planned, config, shards), *_unmerged_notes(planned, unmerged)),
    )


def _plan_shards(
    tasks: Sequence[ResolvedTask], config: Config, shards: int | None, unmerged: Collection[str]
) -> tuple[Shard, ...]:
    asked = _check_shards(shards)
    parts = allocation.target_parts(tasks, config, shards=asked, unmerged=unmerged)
    if sum(part.shards for part in parts) > MAX_SHARDS:
        message = f"targets: {len(parts)} have tasks, one CI matrix takes {MAX_SHARDS}. Use fewer."
        raise ConfigError(message)
    planned: list[Shard] = []
    for part in parts:
        planned += _shards_of(part, first_index=len(planned))
    return tuple(planned)


def _with_misses(task_set: TaskSet, resolution: Resolution) -> tuple[ResolvedTask, ...]:
    """Returns every task of the set. A task that the resolution lacks is a miss."""
    by_task = {(r.task.key, r.task.target): r for r in resolution.tasks}
    return tuple(
        by_task.get((task.key, task.target)) or _resolve_as_miss(task) for task in task_set.tasks
    )


def _resolve_as_miss(task: TuningTask) -> ResolvedTask:
    return ResolvedTask(
        task, Miss("absent"), skipped="shared" if expected_time.is_shared(task) else ""
    )


def _check_shards(shards: int | None) -> int | None:
    if shards is not None and shards < 1:
        message = f"--shards: {shards} is not a number of shards. Use 1 to {MAX_SHARDS}."
        raise ConfigError(message)
    return None if shards is None else min(shards, MAX_SHARDS)


def _shards_of(part: allocation.TargetPart, *, first_index: int) -> list[Shard]:
    tasks = _planned_tasks(part)
    seconds = [
        t.trials * expected_time.seconds_per_trial(t.resolved.task, part.target.kind) for t in tasks
    ]
    groups = allocation.balance_loads(seconds, part.shards)
    budgets = _with_objectives(part, tasks, groups, _shard_budgets(part, tasks, seconds, groups))
    return [
        Shard(
            index=first_index + number,
            target=part.target.name,
            labels=part.target.runner,
            tasks=tuple(tasks[i] for i in group),
            budget=budget,
            predicted_seconds=_at_most(sum(seconds[i] for i in group), budget.seconds),
        )
        for number, (group, budget) in enumerate(zip(groups, budgets, strict=True))
    ]


def _planned_tasks(part: allocation.TargetPart) -> tuple[PlannedTask, ...]:
    """Returns the planned tasks of both sides, the largest expected gain first."""
    kind = part.target.kind
    demands = [
        allocation.Demand(
            weight=expected_time.weight_of(task.task),
            now_ms=expected_time.known_ms(task, kind),
            headroom=expected_time.assumed_headroom(task, kind),
            is_of_base_alone=task.task.is_of_base_alone,
        )
        for task in part.tasks
    ]
    trials = allocation.share_trials(demands, _trials_to_share(part))
    urgent = set(allocation.mattering(demands))
    order = sorted(range(len(demands)), key=lambda i: (-demands[i].gain_ms, i))
    return tuple(
        PlannedTask(
            resolved=part.tasks[i],
            trials=min(trials[i], part.trials_per_task or trials[i]),
            gain_ms=demands[i].gain_ms,
            is_unpaid=i in urgent and not trials[i],
        )
        for i in order
    )


def _trials_to_share(part: allocation.TargetPart) -> int:
    """Returns the number of trials that trials, time and money allow."""
    limits = [] if part.trials is None else [part.trials]
    unfinished = [t.task for t in part.tasks if not t.is_settled]
    if part.machine_seconds is not None and unfinished:
        each = sum(expected_time.seconds_per_trial(t, part.target.kind) for t in unfinished) / len(
            unfinished
        )
        limits.append(int(part.machine_seconds / each))
    return min(limits) if limits else TRIALS_WITHOUT_LIMIT * len(unfinished)


def _shard_budgets(
    part: allocation.TargetPart,
    tasks: Sequence[PlannedTask],
    seconds: Sequence[float],
    groups: Sequence[Sequence[int]],
) -> list[Budget]:
    """Returns the budget of each shard. The wall clock is its own; money and trials follow what is
    planned for it."""
    loads = [sum(seconds[i] for i in group) for group in groups]
    planned = [sum(tasks[i].trials for i in group) for group in groups]
    resolved = [[tasks[i].resolved for i in group] for group in groups]
    trials = allocation.divide_trials(planned, resolved, part.trials)
    # Without a search, money pays for what is only measured: claims, and schedules of an older
    # toolchain.
    return [
        budget_of(
            part.seconds,
            trials=trials[number],
            usd=None if part.usd is None else part.usd * allocation.fraction(loads, number),
            usd_per_hour=part.usd_per_hour,
        )
        for number in range(len(groups))
    ]


def _with_objectives(
    part: allocation.TargetPart,
    tasks: Sequence[PlannedTask],
    groups: Sequence[Sequence[int]],
    budgets: Sequence[Budget],
) -> list[Budget]:
    kind = part.target.kind
    timed = [
        [(tasks[i].resolved.task, expected_time.known_ms(tasks[i].resolved, kind)) for i in group]
        for group in groups
    ]
    target_ms = part.target_latency_ms
    targets = [{} for _ in groups] if target_ms is None else parts_of_target(timed, target_ms)
    return [
        msgspec.structs.replace(
            budget,
            min_gain_percent_per_minute=part.least_gain,
            target_ms=target,
            trials_per_task=part.trials_per_task,
        )
        for budget, target in zip(budgets, targets, strict=True)
    ]


def _at_most(seconds: float, limit: float | None) -> float:
    return seconds if limit is None else min(seconds, limit)


def _whole_budget(shards: Sequence[Shard], config: Config, *, side_by_side: bool) -> Budget:
    prices = {shard.budget.usd_per_hour for shard in shards}
    return Budget(
        seconds=_whole_seconds(shards, config.budget.minutes, side_by_side=side_by_side),
        trials=config.budget.trials,
        trials_per_task=config.budget.trials_per_task,
        usd=config.budget.usd,
        usd_per_hour=prices.pop() if len(prices) == 1 else None,
    )


def _whole_seconds(
    shards: Sequence[Shard], minutes: float | None, *, side_by_side: bool
) -> float | None:
    if not shards:
        return None if minutes is None else minutes * 60
    seconds = [shard.budget.seconds for shard in shards if shard.budget.seconds is not None]
    if len(seconds) < len(shards):
        return None
    return max(seconds) if side_by_side else sum(seconds)


def _notes(
    shards: Sequence[Shard], config: Config, requested_shards: int | None
) -> tuple[str, ...]:
    notes = []
    unserved = sum(
        not task.trials and not task.resolved.is_settled for shard in shards for task in shard.tasks
    )
    if unserved:
        has = plural(unserved, "task has", "tasks have")
        notes.append(f"{has} no trials planned: too small to matter, or no budget")
    if waiting := sum(t.resolved.is_waiting for shard in shards for t in shard.tasks):
        notes.append(waiting_note(waiting))
    if behind := sum(t.resolved.skipped == "behind" for shard in shards for t in shard.tasks):
        notes.append(_far_behind(behind))
    if requested_shards is not None and requested_shards != len(shards):
        tasks_left = sum(
            allocation.left_to_tune([t.resolved for t in shard.tasks]) for shard in shards
        )
        is_default = requested_shards == len(config.targets)  # which nobody asked for
        if tasks_left or not is_default:
            asked = f"{plural(requested_shards, 'shard')} asked for, {len(shards)} planned"
            notes.append(f"{asked}: {plural(tasks_left, 'task')} left to tune")
    caps = (config.budget.minutes, config.budget.usd, config.budget.trials)
    if all(cap is None for cap in caps):
        notes.append("no limit is set on tuning: budget.minutes, usd or trials caps it")
    return tuple(notes)


def _unmerged_notes(shards: Sequence[Shard], unmerged: Collection[str]) -> Iterator[str]:
    for shard in shards:
        is_unpaid = shard.target in unmerged and shard.budget.pays_nothing
        if is_unpaid and allocation.left_to_tune([task.resolved for task in shard.tasks]):
            yield (
                f"target {shard.target} is new and not tuned: until it is merged, the base's "
                f"targets come first"
            )


def _far_behind(tasks: int) -> str:
    which = plural(tasks, "task is", "tasks are")
    behind = "their models stay far behind the runtime that ships, as an earlier run found"
    return f"{which} not tuned: {behind}. tunegate warm --again tunes them"


# The expected costs of a plan's shards.


def estimated_cost(shards: Sequence[Shard]) -> Cost:
    """Returns the sum of machine time and money. Money is None if a shard has no price."""
    return _sum_cost(shards, [shard.predicted_seconds for shard in shards])


def cost_of_hits(
    shards: Sequence[Shard], kinds: Mapping[str, expected_time.TargetKind]
) -> Cost | None:
    """Returns the cost of measuring the candidates that the exact hits hold as records, at the
    times in these; None without a hit. A look-up returns only the best candidates and the latest
    failures, so this is a lower bound. `kinds` are those of the targets."""
    if not trials_of_hits(shards):
        return None
    return _sum_cost(shards, [_seconds_of_hits(shard, kinds[shard.target]) for shard in shards])


def trials_of_hits(shards: Sequence[Shard]) -> int:
    """Returns the number of candidates that the exact hits hold as records."""
    return sum(_trials(task.resolved) for shard in shards for task in shard.tasks)


def _seconds_of_hits(shard: Shard, kind: expected_time.TargetKind) -> float:
    return sum(
        _trials(task.resolved)
        * expected_time.seconds_of_a_trial(expected_time.known_ms(task.resolved, kind), kind)
        for task in shard.tasks
    )


def _trials(resolved: ResolvedTask) -> int:
    lookup = resolved.lookup
    return len(lookup.records) + len(lookup.failures) if isinstance(lookup, ExactHit) else 0


def _sum_cost(shards: Sequence[Shard], seconds: Sequence[float]) -> Cost:
    per_hour = _bill(seconds, [shard.budget.usd_per_hour for shard in shards])
    return Cost(
        seconds=sum(seconds),
        usd=None if per_hour is None else per_hour / SECONDS_PER_HOUR,
    )


def _bill(seconds: Sequence[float], rates: Sequence[float | None]) -> float | None:
    """Returns the seconds of each shard times its rate, None if one has no rate."""
    prices = [rate for rate in rates if rate is not None]
    if not seconds or len(prices) < len(seconds):
        return None
    return sum(each * rate for each, rate in zip(seconds, prices, strict=True))
