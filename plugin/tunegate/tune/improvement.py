"""The improvement curve of a task: the gain that the next candidates can be expected to bring.

The best of n candidates is modelled by a power law, best(n) ~ n^-k: every doubling of the trials
gains about the same share, so each further batch gains less. A search is a staircase, so the
distance of a task from the best rate of the machine tells more about k than the gains of its last
batches (`docs/benchmarks`, "What the next batch gains"). The length of the last step tells whether
another follows.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from tunegate.artifacts.changes import ModelSide

UNSEEN_SECONDS_PER_CANDIDATE = 0.5
MIN_SECONDS_PER_CANDIDATE = 1e-3
PRIOR_STRENGTH = 1.0
FORGETTING = 0.6
"""The weight of a batch against the next one: late batches tell more about what is left."""


class Pace(msgspec.Struct, frozen=True):
    """The exponent k of a task that is as fast as any, and the addition for each e-fold that it is
    behind."""

    exponent: float
    per_behind: float


FROM_NOTHING = Pace(0.25, 0.2)
"""The pace of a search that begins with random candidates."""
INFORMED = Pace(0.03, 0.15)
"""The pace of a search whose first candidates are picked by prior knowledge: these find most of the
gain."""


class MeasuredBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One finished batch: its candidates (failed ones included), their seconds, and the task's best
    time per call afterwards (None while nothing has run). The default schedule's time is apart: it
    comes once, and may be very slow."""

    trials: int
    seconds: float
    best_ms: float | None
    default_seconds: float = 0.0


def expected_gain(
    history: Sequence[MeasuredBatch],
    candidates: int,
    *,
    headroom: float,
    noise: float,
    pace: Pace,
    roofline_gap: float = 0.0,
) -> float:
    """Returns the share of the present time that `candidates` more candidates save, 0 to
    `headroom`. `roofline_gap` is ln(time / the time at the best rate of any task). The first batch
    of a task is expected to gain all of `headroom`."""
    trials = sum(batch.trials for batch in history)
    if trials == 0:
        return headroom
    prior = pace.exponent + pace.per_behind * roofline_gap
    exponent = _exponent(history, prior=prior, noise=noise) / (
        1 + _stall_length(history, noise=noise)
    )
    return min(headroom, 1 - math.pow(1 + candidates / trials, -exponent))


def is_plateaued(
    history: Sequence[MeasuredBatch], *, noise: float, warm_up: int, patience: int
) -> bool:
    """Returns whether the last `patience` batches together gained no more than the noise. The first
    `warm_up` batches do not count, because the cost model knows nothing yet."""
    if len(history) < warm_up + patience:
        return False
    return not _gain(history[-patience - 1], history[-1], noise=noise)


def seconds_per_candidate(histories: Sequence[Sequence[MeasuredBatch]]) -> float:
    """Returns the mean over all these batches, a guess without any."""
    batches = [batch for history in histories for batch in history]
    trials = sum(batch.trials for batch in batches)
    if trials == 0:
        return UNSEEN_SECONDS_PER_CANDIDATE
    seconds = sum(batch.seconds for batch in batches)
    return max(MIN_SECONDS_PER_CANDIDATE, seconds / trials)


def seconds_of_a_default(histories: Sequence[Sequence[MeasuredBatch]]) -> float:
    """Returns the mean over the tasks that measured their default schedule, 0 without any."""
    seconds = [batch.default_seconds for history in histories for batch in history[:1]]
    return sum(seconds) / len(seconds) if seconds else 0.0


def _exponent(history: Sequence[MeasuredBatch], *, prior: float, noise: float) -> float:
    """Returns k by least squares of ln(best) over ln(trials), with more weight on late batches,
    shrunk towards the prior. The first batch is left out: it gained over the default schedule, not
    over a search."""
    covariance, variance = PRIOR_STRENGTH * prior, PRIOR_STRENGTH
    trials = float(history[0].trials)
    age = len(history) - 2
    for before, after in pairwise(history):
        step = math.log1p(after.trials / max(trials, 1.0))
        weight = FORGETTING**age
        covariance += weight * step * _gain(before, after, noise=noise)
        variance += weight * step * step
        trials += after.trials
        age -= 1
    return covariance / variance


def _stall_length(history: Sequence[MeasuredBatch], *, noise: float) -> float:
    """Returns ln(candidates now / candidates at the last gain above the noise). It counts against
    the pace as much as the prior does; nothing else shows that a search is over."""
    trials_so_far = trials_at_gain = history[0].trials
    for before, after in pairwise(history):
        trials_so_far += after.trials
        is_first = before.best_ms is None and after.best_ms is not None
        if is_first or not trials_at_gain or _gain(before, after, noise=noise):
            trials_at_gain = trials_so_far
    return math.log(trials_so_far / trials_at_gain) if trials_at_gain else 0.0


def _gain(before: MeasuredBatch, after: MeasuredBatch, *, noise: float) -> float:
    """Returns the gain ln(before / after), 0 within the noise. A first time has no measured
    gain."""
    if before.best_ms is None or after.best_ms is None or after.best_ms <= 0:
        return 0.0
    gain = math.log(before.best_ms / after.best_ms) if before.best_ms > 0 else 0.0
    return gain if gain > noise else 0.0


# The state of a task while it is tuned.

UNKNOWN_HEADROOM = 0.9
"""The assumed headroom of a task without measurements."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """A task between batches. `prior_ms` stands in until something is measured. `headroom` is the
    share of its time that tuning may save. `flops` and `bytes_moved` are of one call. `pace` is
    that of its search. `history` has the finished batches. `in_flight` counts candidates that are
    out. `exhausted`: the search has nothing new. `is_searching`: its search child is busy, with
    this task or another. `sides` pay for it."""

    weight: int
    prior_ms: float
    headroom: float = UNKNOWN_HEADROOM
    flops: float = 0.0
    bytes_moved: float = 0.0
    pace: Pace = FROM_NOTHING
    best_ms: float | None = None
    history: tuple[MeasuredBatch, ...] = ()
    in_flight: int = 0
    exhausted: bool = False
    is_searching: bool = False
    sides: tuple[ModelSide, ...] = ()

    @property
    def model_ms(self) -> float:
        """Its part of the end-to-end estimate."""
        return self.weight * (self.prior_ms if self.best_ms is None else self.best_ms)

    @property
    def is_open(self) -> bool:
        """True if the task may get candidates, now or later."""
        return not self.exhausted and self.headroom > 0

    @property
    def trials(self) -> int:
        """The number of its candidates, finished and in flight."""
        return sum(batch.trials for batch in self.history) + self.in_flight
