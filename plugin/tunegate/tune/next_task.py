"""Chooses the task that gets the next batch, and the size of the batch.

Every task that matters first gets a small batch, largest share of the model first. Later batches go
where the expected end-to-end gain per second is highest: Trimmer's cost objective, with task
weights and an improvement curve in place of its round-robin.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from tunegate.artifacts.changes import ModelSide, Side
from tunegate.tune.improvement import (
    TaskState,
    expected_gain,
    is_plateaued,
    seconds_of_a_default,
    seconds_per_candidate,
)

MATTERS = 0.01
"""Tasks with this share of the estimated model time take part in the first round."""


NOISE = 0.01
"""The least relative gain that counts."""
FIRST_ROUND_SECONDS = 26.0
"""The first batches of all tasks that matter end by then, or by half of the time."""
_EXPLORATORY_BATCH, _EXPLORATORY_SHARE = 2, 0.1
"""Up to this share of the rest goes to batches of this size for tasks that seem not to matter."""
_WARM_UP_BATCHES, _PLATEAU_BATCHES = 2, 3
_IN_FLIGHT_PER_WORKER = 1.5


class SearchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A batch has `batch` candidates, and must promise `min_gain_percent_per_minute` of the
    end-to-end time."""

    batch: int = 8
    min_gain_percent_per_minute: float = 0.5


DEFAULT_POLICY = SearchPolicy()


def batch_for(workers: int, tasks: int) -> int:
    """Returns the size of batches that keep all workers busy with few tasks: a task gets its next
    batch once the last is back."""
    in_flight = -(-int(_IN_FLIGHT_PER_WORKER * workers) // max(1, tasks))
    return max(DEFAULT_POLICY.batch, in_flight)


class RemainingBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of the budget, None without a limit. `spent_seconds` count from the start."""

    trials: int | None = None
    seconds: float | None = None
    spent_seconds: float = 0.0


class Choice(msgspec.Struct, frozen=True):
    """`index` is that of the state passed in."""

    index: int
    candidates: int


def choose(
    states: Sequence[TaskState], budget: RemainingBudget, policy: SearchPolicy = DEFAULT_POLICY
) -> Choice | None:
    """Returns the next batch, or None if none is worth it now. Without candidates in flight None is
    final: the budget is spent, or the search has converged. Otherwise ask again when a batch is
    back."""
    if budget.trials == 0 or (budget.seconds is not None and budget.seconds <= 0):
        return None
    waiting = _first_round(states)
    if waiting:
        # Those of the less served side first. All of them get theirs.
        even = evenly_served(states, waiting, waiting, policy.batch) or waiting
        return Choice(even[0], _first_batch(states, len(waiting), budget, policy.batch))
    unseen = _unseen_tasks(states)
    if unseen and _is_cheap(states, len(unseen), budget):
        return Choice(unseen[0], _EXPLORATORY_BATCH)
    index = _most_gainful(states, policy)
    if index is None:
        return None
    return Choice(index, _later_batch(states, index, budget, policy.batch))


def _first_round(states: Sequence[TaskState]) -> list[int]:
    """Returns the tasks that matter and have had nothing yet, largest share of the model first."""
    total_ms = sum(state.model_ms for state in states)
    return [
        index for index in _unseen_tasks(states) if states[index].model_ms >= MATTERS * total_ms
    ]


def _unseen_tasks(states: Sequence[TaskState]) -> list[int]:
    unseen = [
        index
        for index, state in enumerate(states)
        if _is_ready(state) and not state.history and not state.in_flight
    ]
    return sorted(unseen, key=lambda index: -states[index].model_ms)


def _is_cheap(states: Sequence[TaskState], unseen: int, budget: RemainingBudget) -> bool:
    """Returns whether a small batch for every seemingly small task takes little of what is left:
    their size is a guess from the operator."""
    trials = unseen * _EXPLORATORY_BATCH
    seconds = trials * _usual_seconds(states)
    return (budget.trials is None or trials <= _EXPLORATORY_SHARE * budget.trials) and (
        budget.seconds is None or seconds <= _EXPLORATORY_SHARE * budget.seconds
    )


def _first_batch(
    states: Sequence[TaskState], waiting: int, budget: RemainingBudget, batch: int
) -> int:
    """Returns the size of a first batch: smaller, down to one, if the time would not reach all
    waiting tasks."""
    affordable = float(batch)
    if budget.trials is not None:
        affordable = min(affordable, budget.trials / waiting)
    # Half of the time at most: the first round finds what is slow, the second half tunes it.
    seconds = FIRST_ROUND_SECONDS - budget.spent_seconds
    if budget.seconds is not None:
        seconds = min(seconds, budget.seconds / 2)
    histories = [state.history for state in states]
    seconds_of_one = max(0.0, seconds) / waiting - seconds_of_a_default(histories)
    affordable = min(affordable, seconds_of_one / seconds_per_candidate(histories))
    candidates = max(1, int(affordable))
    return candidates if budget.trials is None else min(candidates, budget.trials)


def _later_batch(
    states: Sequence[TaskState], index: int, budget: RemainingBudget, batch: int
) -> int:
    if budget.seconds is not None:
        affordable = budget.seconds / _seconds_each(states[index], _usual_seconds(states))
        batch = min(batch, max(1, int(affordable)))
    return batch if budget.trials is None else min(batch, budget.trials)


def _most_gainful(states: Sequence[TaskState], policy: SearchPolicy) -> int | None:
    """Returns the task whose next batch promises most per second. A plateaued task is parked: it
    goes on when no other is worth a batch."""
    total_ms = sum(state.model_ms for state in states)
    floor = policy.min_gain_percent_per_minute / 100 * total_ms / 60
    gaps = roofline_gaps([Work(state.flops, state.bytes_moved, state.best_ms) for state in states])
    usual_seconds = _usual_seconds(states)
    ready = [
        (_gain_ms_per_second(state, usual_seconds, gaps[index], policy.batch), index)
        for index, state in enumerate(states)
        if _is_ready(state) and _has_its_results(state, policy.batch)
    ]
    worth = [(gain, index) for gain, index in ready if gain > 0 and gain >= floor]
    due = {index for _, index in worth}
    later = {index for index, state in enumerate(states) if state.is_open} - {i for _, i in ready}
    even = set(evenly_served(states, sorted(due), due | later, policy.batch))
    worth = [(gain, index) for gain, index in worth if index in even]
    active = [pair for pair in worth if not _is_parked(states[pair[1]])]
    candidates = active or worth
    return max(candidates, key=lambda pair: (pair[0], -pair[1]))[1] if candidates else None


def _is_ready(state: TaskState) -> bool:
    return state.is_open and not state.is_searching


def _has_its_results(state: TaskState, batch: int) -> bool:
    """Returns whether at most the tail of a batch is missing, so the search knows most of its
    results."""
    if not state.history:
        return state.in_flight == 0
    return state.in_flight <= batch // 4


def _is_parked(state: TaskState) -> bool:
    return is_plateaued(
        state.history, noise=NOISE, warm_up=_WARM_UP_BATCHES, patience=_PLATEAU_BATCHES
    )


def _gain_ms_per_second(state: TaskState, usual_seconds: float, gap: float, batch: int) -> float:
    gain = expected_gain(
        state.history,
        batch,
        headroom=state.headroom,
        noise=NOISE,
        pace=state.pace,
        roofline_gap=gap,
    )
    return state.model_ms * gain / (batch * _seconds_each(state, usual_seconds))


def _seconds_each(state: TaskState, usual_seconds: float) -> float:
    return seconds_per_candidate([state.history]) if state.history else usual_seconds


def _usual_seconds(states: Sequence[TaskState]) -> float:
    return seconds_per_candidate([state.history for state in states])


# Base and head are searched equally far. Otherwise the comparison would favour the side that was
# tuned more.

_ROUNDING = 1e-6
"""The care of a side is a mean of whole numbers."""
_OTHER: dict[Side, Side] = {"base": "head", "head": "base"}
_Item = TypeVar("_Item")


def sides_in_turn(items: Sequence[_Item], is_of_base_alone: Callable[[_Item], bool]) -> list[_Item]:
    """Returns the items with the first of the base alone beside the first of the others, then the
    second of each."""
    of_base = [item for item in items if is_of_base_alone(item)]
    others = [item for item in items if not is_of_base_alone(item)]
    place = {item: rank for side in (of_base, others) for rank, item in enumerate(side)}
    return sorted(items, key=lambda item: place[item])


def evenly_served(
    states: Sequence[TaskState], ready: Sequence[int], rivals: Collection[int], batch: int
) -> list[int]:
    """The tasks of `ready`, in order, without those whose side is a batch ahead of the other.

    `rivals` are all that still get trials, now or later: a side waits for none but these.
    """
    care = _care_of_sides(states)
    waiting = {side for index in rivals for side in states[index].sides}

    def is_ahead(side: ModelSide) -> bool:
        other = (side[0], _OTHER[side[1]])
        return other in waiting and care[side] - care[other] >= batch - _ROUNDING

    even = [index for index in ready if not any(map(is_ahead, states[index].sides))]
    is_pending = any(state.in_flight for state in states)
    return even if even or is_pending else list(ready)


def _care_of_sides(states: Sequence[TaskState]) -> dict[ModelSide, float]:
    """Returns the mean trials of each side's tasks, weighted by their share of its time. Tasks with
    nothing more to search do not count."""
    weights: dict[ModelSide, float] = {}
    trials: dict[ModelSide, float] = {}
    for state in filter(lambda state: state.is_open, states):
        for side in state.sides:
            weights[side] = weights.get(side, 0.0) + state.model_ms
            trials[side] = trials.get(side, 0.0) + state.model_ms * state.trials
    return {side: trials[side] / weight if weight else 0.0 for side, weight in weights.items()}


# The distance of a task from the rate that the run's other tasks reach on this machine.


class Work(NamedTuple):
    """One call of a task: operations, the least bytes moved, and its best time so far."""

    flops: float
    bytes_moved: float
    best_ms: float | None


def roofline_gaps(works: Sequence[Work]) -> list[float]:
    """Returns, for each task, ln(best time / the time at the best rate of any), 0 if unknown. The
    rates are a roofline (Williams et al., CACM 2009) of the tasks themselves: the most operations,
    and the most bytes, per millisecond of any task. Ansor (OSDI 2020, appendix on the task
    scheduler) bounds a task by similar ones to the same end."""
    whole = [_drop_fractions(work) for work in works]
    with_times = [(work, work.best_ms) for work in whole if work.best_ms]
    flops_per_ms = max((work.flops / ms for work, ms in with_times), default=0.0)
    bytes_per_ms = max((work.bytes_moved / ms for work, ms in with_times), default=0.0)
    return [_behind(work, flops_per_ms, bytes_per_ms) for work in whole]


def _drop_fractions(work: Work) -> Work:
    """Drops fractions of an operation or byte: their quotients overflow."""
    return work._replace(
        flops=work.flops if work.flops >= 1 else 0.0,
        bytes_moved=work.bytes_moved if work.bytes_moved >= 1 else 0.0,
    )


def _behind(work: Work, flops_per_ms: float, bytes_per_ms: float) -> float:
    if not work.best_ms:
        return 0.0
    computing_ms = work.flops / flops_per_ms if flops_per_ms else 0.0
    moving_ms = work.bytes_moved / bytes_per_ms if bytes_per_ms else 0.0
    reachable_ms = max(computing_ms, moving_ms)
    return max(0.0, math.log(work.best_ms / reachable_ms)) if reachable_ms > 0 else 0.0
