"""Tasks over runners, so that all finish at about the same time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import Config, TargetConfig
from tunegate.tune.budget import SECONDS_PER_HOUR, least_gain, resolve_budget
from tunegate.tune.claims import is_settled
from tunegate.tune.expected_time import seconds_per_trial


def balanced(loads: Sequence[float], bins: int) -> tuple[tuple[int, ...], ...]:
    """Indexes of the loads per bin, in order: longest processing time first (Graham, 1969).

    The fullest bin holds at most 4/3 - 1/(3 bins) of what the best partition's would.
    """
    filled = [(0.0, number) for number in range(bins)]
    chosen: list[list[int]] = [[] for _ in range(bins)]
    for index in sorted(range(len(loads)), key=lambda i: (-loads[i], i)):
        load, number = filled[0]
        chosen[number].append(index)
        heapq.heapreplace(filled, (load + loads[index], number))
    return tuple(tuple(sorted(indexes)) for indexes in chosen)


# One run's tasks, shards and budget, split over its targets.


class TargetPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the budget of one target. `seconds` is the wall clock of each of its `shards`;
    `trials` and `usd` are for all of them together; None is no limit. `least_gain` is in percent
    per minute."""

    target: TargetConfig
    tasks: tuple[ResolvedTask, ...]
    shards: int
    seconds: float | None
    trials: int | None
    usd: float | None
    usd_per_hour: float | None
    least_gain: float
    target_latency_ms: float | None
    trials_per_task: int | None = None

    @property
    def machine_seconds(self) -> float | None:
        """Returns the machine seconds that time and money allow to all its shards together; None
        for no limit."""
        limits = [] if self.seconds is None else [self.seconds * self.shards]
        if self.usd is not None and self.usd_per_hour:
            limits.append(self.usd / self.usd_per_hour * SECONDS_PER_HOUR)
        return min(limits) if limits else None


def target_parts(
    tasks: Sequence[ResolvedTask], config: Config, *, shards: int | None
) -> tuple[TargetPart, ...]:
    """A part for each target that has tasks. Without `shards` there is one for each, they run one
    after the other and share the minutes; otherwise that many run side by side.

    Machine time is shared by the tasks left to tune, so that a task gets as much of it on either
    target, whatever it costs there.
    """
    used = {task.task.target for task in tasks}
    targets = [target for target in config.targets if target.name in used]
    by_target = [[task for task in tasks if task.task.target == t.name] for t in targets]
    loads = [_load(mine, target) for mine, target in zip(by_target, targets, strict=True)]
    budgets = [resolve_budget(config.budget, target) for target in targets]
    bills = [load * (budget.usd_per_hour or 0) for load, budget in zip(loads, budgets, strict=True)]
    counts = _shard_counts(by_target, shards)
    trials = _trial_parts(by_target, config.budget.trials)
    minutes = config.budget.minutes
    return tuple(
        TargetPart(
            target=target,
            tasks=tuple(by_target[i]),
            shards=counts[i],
            seconds=None
            if minutes is None
            else minutes * 60 * (1.0 if shards else _fraction(loads, i)),
            trials=trials[i],
            usd=None if config.budget.usd is None else config.budget.usd * _fraction(bills, i),
            usd_per_hour=budgets[i].usd_per_hour,
            least_gain=least_gain(config.budget, budgets[i].usd_per_hour),
            target_latency_ms=config.budget.target_latency_ms,
            trials_per_task=config.budget.trials_per_task,
        )
        for i, target in enumerate(targets)
    )


def left_to_tune(tasks: Sequence[ResolvedTask]) -> int:
    return sum(not is_settled(task) for task in tasks)


def _load(tasks: Sequence[ResolvedTask], target: TargetConfig) -> float:
    """Seconds of one trial of every task left to tune."""
    return sum(seconds_per_trial(task.task, target.kind) for task in tasks if not is_settled(task))


def _shard_counts(by_target: Sequence[Sequence[ResolvedTask]], shards: int | None) -> list[int]:
    """Returns the number of shards of each target: one at least, and no more than it has tasks left
    to tune."""
    most = [max(1, left_to_tune(tasks)) for tasks in by_target]
    if shards is None or shards <= len(most):
        return [1] * len(most)
    counts = divide(most, shards, at_least=[1] * len(most))
    return [min(count, limit) for count, limit in zip(counts, most, strict=True)]


def _trial_parts(
    by_target: Sequence[Sequence[ResolvedTask]], trials: int | None
) -> Sequence[int | None]:
    if trials is None:
        return [None] * len(by_target)
    parts = divide([left_to_tune(tasks) for tasks in by_target], trials)
    return [paid_trials(part, tasks, trials) for part, tasks in zip(parts, by_target, strict=True)]


def paid_trials(planned: int, tasks: Sequence[ResolvedTask], trials: int) -> int:
    """The number of trials to pay for: at least one where there is nothing to search, but a claim
    to measure, because none would mean that nothing is paid for."""
    has_claims = any(task.claims is not None for task in tasks)
    return max(planned, min(1, trials)) if has_claims else planned


def _fraction(parts: Sequence[float], index: int) -> float:
    """Equal ones where there is nothing to share by."""
    total = sum(parts)
    return parts[index] / total if total else 1 / len(parts)


# Trials shared over tasks before any of them is tuned. Every task that matters gets a first batch
# before any gets more; the rest goes by the square root of the expected gain, because each further
# trial of one task gains less than the one before.

FIRST_BATCH = 8
MIN_FIRST_BATCH = 2
SHARE_THAT_MATTERS = 0.01
"""Share of the estimated model time from which a task gets a first batch."""
EXPLORATORY_BATCH = 2
EXPLORATORY_SHARE = 0.1
"""The share of what the first batches leave that goes to a small batch of each task
that does not seem to matter."""
_BISECTIONS = 100


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of a task for trials. `headroom` is the share of its time that can be saved, 0 to
    1; `is_of_base_alone`: no head uses it."""

    weight: int
    now_ms: float
    headroom: float
    is_of_base_alone: bool = False

    @property
    def gain_ms(self) -> float:
        """The end-to-end time that tuning is expected to save at best."""
        return self.weight * self.now_ms * self.headroom


def mattering(demands: Sequence[Demand]) -> list[int]:
    """Those that are to be searched before anything else."""
    total_ms = sum(demand.weight * demand.now_ms for demand in demands)
    return [
        index
        for index, demand in enumerate(demands)
        if demand.gain_ms > 0 and demand.weight * demand.now_ms >= SHARE_THAT_MATTERS * total_ms
    ]


def share_trials(demands: Sequence[Demand], trials: int) -> tuple[int, ...]:
    """Trials for each, in the order given; never more than `trials` in total.

    What has no room gets none. Otherwise all are given away, so that a heavier task never gets
    fewer than a lighter one like it.
    """
    first = _first_batches(demands, trials)
    unseen = [i for i, demand in enumerate(demands) if demand.gain_ms > 0 and not first[i]]
    if EXPLORATORY_BATCH * len(unseen) <= EXPLORATORY_SHARE * (trials - sum(first)):
        for index in unseen:
            first[index] = EXPLORATORY_BATCH
    pulls = [math.sqrt(demand.gain_ms) for demand in demands]
    return divide(pulls, trials, at_least=first)


def divide(
    pulls: Sequence[float], total: int, *, at_least: Sequence[int] | None = None
) -> tuple[int, ...]:
    """`total` in whole parts proportional to `pulls`, by highest averages (D'Hondt).

    Unlike rounding the quotas, a larger pull never gets less, whatever the others are. Nothing is
    given where there is no pull; `at_least` must not sum to more than `total`.
    """
    floors = [0] * len(pulls) if at_least is None else list(at_least)
    if not any(pulls):
        return tuple(floors)
    largest = max(pulls)
    pulls = [pull / largest for pull in pulls]  # quotients of tiny pulls would lose their digits
    parts = _just_below(pulls, total, floors)
    heap = [
        (-pull / (part + 1), i)
        for i, (pull, part) in enumerate(zip(pulls, parts, strict=True))
        if pull > 0
    ]
    heapq.heapify(heap)
    for _ in range(total - sum(parts)):
        _, index = heap[0]
        parts[index] += 1
        heapq.heapreplace(heap, (-pulls[index] / (parts[index] + 1), index))
    return tuple(parts)


def _just_below(pulls: Sequence[float], total: int, floors: Sequence[int]) -> list[int]:
    """The allocation that highest averages has a few steps before the
    end, found by bisecting its price."""

    def parts_at(price: float) -> list[int]:
        return [max(low, int(pull / price)) for pull, low in zip(pulls, floors, strict=True)]

    dear = sum(pulls) / max(total, 1) + max(pulls)
    cheap = 0.0
    for _ in range(_BISECTIONS):
        price = (dear + cheap) / 2
        if price in (dear, cheap):
            break
        if sum(parts_at(price)) <= total:
            dear = price
        else:
            cheap = price
    return parts_at(dear)


def _first_batches(demands: Sequence[Demand], trials: int) -> list[int]:
    """Equal first batches for all that matter. Where they do not reach all, the biggest gains of
    base and head come in turn, so that neither side is served before the other."""
    batches = [0] * len(demands)
    served = _in_turn(demands, mattering(demands))
    if not served:
        return batches
    each = min(FIRST_BATCH, max(MIN_FIRST_BATCH, trials // len(served)))
    for index in served:
        batches[index] = min(each, trials - sum(batches))
    return batches


def _in_turn(demands: Sequence[Demand], indices: Sequence[int]) -> list[int]:
    """The biggest gain of each side, then the second of each."""
    by_gain = sorted(indices, key=lambda i: -demands[i].gain_ms)
    of_base = [i for i in by_gain if demands[i].is_of_base_alone]
    others = [i for i in by_gain if not demands[i].is_of_base_alone]
    place = {i: rank for side in (of_base, others) for rank, i in enumerate(side)}
    return sorted(by_gain, key=lambda i: place[i])
