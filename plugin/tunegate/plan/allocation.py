"""Distributes tasks over runners, so that all finish at about the same time."""

import heapq
import math
from collections.abc import Collection, Sequence

import msgspec

from tunegate.artifacts.plans import SECONDS_PER_HOUR
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import Config, TargetConfig
from tunegate.tune.budget import least_gain, resolve_budget, trials_kept
from tunegate.tune.expected_time import seconds_per_trial
from tunegate.tune.next_task import sides_in_turn
from tunegate_cache.format.records import ExactHit


def balance_loads(loads: Sequence[float], bins: int) -> tuple[tuple[int, ...], ...]:
    """Returns the indexes of the loads per bin, by longest processing time first (Graham, 1969).
    The fullest bin holds at most 4/3 - 1/(3 bins) of the optimum's."""
    filled = [(0.0, number) for number in range(bins)]
    chosen: list[list[int]] = [[] for _ in range(bins)]
    for index in sorted(range(len(loads)), key=lambda i: (-loads[i], i)):
        load, number = filled[0]
        chosen[number].append(index)
        heapq.heapreplace(filled, (load + loads[index], number))
    return tuple(tuple(sorted(indexes)) for indexes in chosen)


# The tasks, shards and budget of one run, split over its targets.


class TargetPart(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of one target. `seconds` is the wall clock of each of its `shards`; `trials` and
    `usd` are for all of them together; None is no limit. `least_gain` is in percent per minute."""

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
        """The machine seconds that time and money allow to all shards together, None without a
        limit."""
        limits = [] if self.seconds is None else [self.seconds * self.shards]
        if self.usd is not None and self.usd_per_hour:
            limits.append(self.usd / self.usd_per_hour * SECONDS_PER_HOUR)
        return min(limits) if limits else None


def target_parts(
    tasks: Sequence[ResolvedTask],
    config: Config,
    *,
    shards: int | None,
    unmerged: Collection[str] = (),
) -> tuple[TargetPart, ...]:
    """Returns a part for each target that has tasks. Without `shards` each target has one, they run
    in turn and share the minutes; otherwise that many run side by side, and the `unmerged` targets,
    which only the head has, share the minutes of one. Machine time is shared by the tasks left to
    tune, so a task gets the same share on any target, whatever it costs there. `unmerged` targets
    get what the others leave."""
    names = {task.task.target for task in tasks}
    targets = [target for target in config.targets if target.name in names]
    by_target = [[task for task in tasks if task.task.target == t.name] for t in targets]
    is_new = [target.name in unmerged for target in targets]
    loads = [_load(mine, target) for mine, target in zip(by_target, targets, strict=True)]
    budgets = [resolve_budget(config.budget, target) for target in targets]
    bills = [load * (budget.usd_per_hour or 0) for load, budget in zip(loads, budgets, strict=True)]
    counts = _shard_counts(by_target, is_new, shards)
    trials = _trial_parts(by_target, config.budget.trials, is_new)
    seconds = _seconds_parts(config.budget.minutes, loads, is_new, in_turn=shards is None)
    most = [
        time * count * (budget.usd_per_hour or 0) / SECONDS_PER_HOUR
        for time, count, budget in zip(seconds, counts, budgets, strict=True)
    ]
    money = _money_parts(config.budget.usd, bills, most, is_new)
    return tuple(
        TargetPart(
            target=target,
            tasks=tuple(by_target[i]),
            shards=counts[i],
            seconds=None if config.budget.minutes is None else seconds[i],
            trials=trials[i],
            usd=money[i],
            usd_per_hour=budgets[i].usd_per_hour,
            least_gain=least_gain(config.budget, budgets[i].usd_per_hour),
            target_latency_ms=config.budget.target_latency_ms,
            trials_per_task=config.budget.trials_per_task,
        )
        for i, target in enumerate(targets)
    )


def left_to_tune(tasks: Sequence[ResolvedTask]) -> int:
    return sum(not task.is_settled for task in tasks)


def asked_at_most(tasks: Sequence[ResolvedTask]) -> int:
    """Returns the number of known schedules that may be measured without a search: claims, and the
    best of trusted zones. Only the tuning machine knows whether those are of its toolchain."""
    claims = sum(len(task.claims.records) for task in tasks if task.claims is not None)
    return claims + sum(isinstance(t.lookup, ExactHit) and not t.skipped for t in tasks)


def _load(tasks: Sequence[ResolvedTask], target: TargetConfig) -> float:
    """Returns the seconds of one trial of every task left to tune."""
    return sum(seconds_per_trial(task.task, target.kind) for task in tasks if not task.is_settled)


def _shard_counts(
    by_target: Sequence[Sequence[ResolvedTask]], is_new: Sequence[bool], shards: int | None
) -> list[int]:
    """Returns the number of shards of each target: at least one, at most one for each task left to
    tune. New targets share the minutes of one, so each has one."""
    most = [
        1 if new else max(1, left_to_tune(tasks))
        for tasks, new in zip(by_target, is_new, strict=True)
    ]
    total = (shards or 0) + sum(is_new)
    if total <= len(most):
        return [1] * len(most)
    pulls = [0 if new else limit for limit, new in zip(most, is_new, strict=True)]
    counts = divide(pulls, total, at_least=[1] * len(most))
    return [min(count, limit) for count, limit in zip(counts, most, strict=True)]


def _before_new(parts: Sequence[float], is_new: Sequence[bool]) -> Sequence[float]:
    """Returns the parts, without those of new targets if another has one: what the base gates is
    tuned as if the change added no target."""
    others = [0.0 if new else part for part, new in zip(parts, is_new, strict=True)]
    return others if any(others) else parts


def _seconds_parts(
    minutes: float | None, loads: Sequence[float], is_new: Sequence[bool], *, in_turn: bool
) -> Sequence[float]:
    """Returns the seconds of each shard of each target, infinite without a limit."""
    if minutes is None:
        return [math.inf] * len(loads)
    if in_turn:
        first = _before_new(loads, is_new)
        return [minutes * 60 * fraction(first, i) for i in range(len(loads))]
    loads = [load if new else 0.0 for load, new in zip(loads, is_new, strict=True)]
    return [minutes * 60 * (fraction(loads, i) if new else 1) for i, new in enumerate(is_new)]


def _money_parts(
    usd: float | None, bills: Sequence[float], most: Sequence[float], is_new: Sequence[bool]
) -> Sequence[float | None]:
    """Returns the money of each target. `most` is what its minutes allow it to spend: what the
    targets of the base cannot spend is for the new ones."""
    if usd is None:
        return [None] * len(bills)
    first = _before_new(bills, is_new)
    parts = [usd * fraction(first, i) for i in range(len(bills))]
    if first == bills:
        return parts
    parts = [min(each) for each in zip(parts, most, strict=True)]
    left = usd - sum(parts)
    bills = [bill if new else 0.0 for bill, new in zip(bills, is_new, strict=True)]
    return [left * fraction(bills, i) if new else parts[i] for i, new in enumerate(is_new)]


def _trial_parts(
    by_target: Sequence[Sequence[ResolvedTask]], trials: int | None, is_new: Sequence[bool]
) -> Sequence[int | None]:
    work = [left_to_tune(tasks) + len(_with_claims(tasks)) for tasks in by_target]
    first = _before_new(work if any(work) else [asked_at_most(x) for x in by_target], is_new)
    paid = [tasks if part else () for tasks, part in zip(by_target, first, strict=True)]
    return divide_trials([left_to_tune(tasks) for tasks in paid], paid, trials)


def divide_trials(
    searched: Sequence[float], parts: Sequence[Sequence[ResolvedTask]], trials: int | None
) -> Sequence[int | None]:
    """Returns the trials of each part. Claims of tasks without a search get what they need, at most
    half of all, and searches the rest. Without a search known schedules get all."""
    if trials is None:
        return [None] * len(parts)
    if not any(searched):
        return divide([asked_at_most(tasks) for tasks in parts], trials)
    claimed = [asked_at_most(_with_claims(tasks)) for tasks in parts]
    kept = divide(claimed, trials_kept(sum(claimed), trials))
    return [sum(x) for x in zip(kept, divide(searched, trials - sum(kept)), strict=True)]


def _with_claims(tasks: Sequence[ResolvedTask]) -> list[ResolvedTask]:
    """Returns the tasks whose claims are measured without a search."""
    return [task for task in tasks if task.is_settled and task.claims is not None]


def fraction(parts: Sequence[float], index: int) -> float:
    """Returns one share of the parts. All shares are equal if every part is 0."""
    total = sum(parts)
    return parts[index] / total if total else 1 / len(parts)


# Shares trials over tasks before any is tuned. Every task that matters gets a first batch before
# any gets more. The rest follows the square root of the expected gain, because each further trial
# of a task gains less.

FIRST_BATCH = 8
MIN_FIRST_BATCH = 2
SHARE_THAT_MATTERS = 0.01
"""A task with this share of the estimated model time gets a first batch."""
EXPLORATORY_BATCH = 2
EXPLORATORY_SHARE = 0.1
"""The share of the trials after the first batches that goes to small batches of the other tasks."""
_BISECTIONS = 100


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of a task for trials. `headroom` is the share of its time that can be saved, 0 to
    1. `is_of_base_alone` means that no head uses it."""

    weight: int
    now_ms: float
    headroom: float
    is_of_base_alone: bool = False

    @property
    def gain_ms(self) -> float:
        """The end-to-end time that tuning is expected to save at best."""
        return self.weight * self.now_ms * self.headroom


def mattering(demands: Sequence[Demand]) -> list[int]:
    """Returns the tasks to search before anything else."""
    total_ms = sum(demand.weight * demand.now_ms for demand in demands)
    return [
        index
        for index, demand in enumerate(demands)
        if demand.gain_ms > 0 and demand.weight * demand.now_ms >= SHARE_THAT_MATTERS * total_ms
    ]


def share_trials(demands: Sequence[Demand], trials: int) -> tuple[int, ...]:
    """Returns the trials of each demand, in order, at most `trials` in total. A task without
    headroom gets none. All others are given away, and a heavier task never gets fewer than a
    lighter one like it."""
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
    """Returns `total` in whole parts proportional to `pulls`, by highest averages (D'Hondt). Unlike
    rounded quotas, a larger pull never gets less. Without any pull nothing is given. The sum of
    `at_least` must not exceed `total`."""
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
    """Returns the allocation that highest averages has a few steps before the end, by bisecting its
    price."""

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
    """Returns equal first batches for all that matter. If they do not suffice, the biggest gains of
    base and head take turns, so neither side is served before the other."""
    batches = [0] * len(demands)
    by_gain = sorted(mattering(demands), key=lambda i: -demands[i].gain_ms)
    served = sides_in_turn(by_gain, lambda i: demands[i].is_of_base_alone)
    each = min(FIRST_BATCH, max(MIN_FIRST_BATCH, trials // max(1, len(served))))
    for index in served:
        batches[index] = min(each, trials - sum(batches))
    return batches
