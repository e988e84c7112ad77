"""The improvement curve of a task: what the next candidates can be expected to gain.

The best of n candidates is taken to follow a power law, best(n) ~ n^-k: every doubling of the
trials gains about the same share, so each further batch gains less. How far a task is behind what
the machine can do says more of k than what its last batches gained: a search is a staircase
(`docs/benchmarks`, "What the next batch gains"). The length of its last step says whether there
is another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from tunegate.artifacts.changes import ModelSide

UNSEEN_SECONDS_PER_CANDIDATE = 0.5
MIN_SECONDS_PER_CANDIDATE = 1e-3
PRIOR_STRENGTH = 1.0
FORGETTING = 0.6
"""Weight of a batch against the one after it: late batches say more about what is left."""


class Pace(msgspec.Struct, frozen=True):
    """The pace of a task that is as fast as any, and what is added for
    each e-fold that it is behind."""

    exponent: float
    per_behind: float


FROM_NOTHING = Pace(0.25, 0.2)
"""The pace of a search that begins with random candidates."""
INFORMED = Pace(0.03, 0.15)
"""The pace of a search whose first candidates are picked by what other tasks
took: it finds most with these."""


class MeasuredBatch(msgspec.Struct, frozen=True, kw_only=True):
    """One finished batch: its candidates (failed ones included), the seconds they took, and the
    best time per call of the task after it (None while nothing has run). What the default schedule
    took, which comes once and may be very slow, stands apart."""

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
    behind: float = 0.0,
) -> float:
    """The share of the present time that this many further candidates save, 0 to `headroom`.

    `behind` is ln(time / the time at the best rate of any task). A task without history is expected
    to gain its whole `headroom` from the first batch.
    """
    trials = sum(batch.trials for batch in history)
    if trials == 0:
        return headroom
    prior = pace.exponent + pace.per_behind * behind
    exponent = _exponent(history, prior=prior, noise=noise) / (1 + _stalled(history, noise=noise))
    return min(headroom, 1 - math.pow(1 + candidates / trials, -exponent))


def is_plateaued(
    history: Sequence[MeasuredBatch], *, noise: float, warm_up: int, patience: int
) -> bool:
    """Returns whether `patience` batches in a row together gained no more than the noise, the first
    `warm_up` batches not counted: a search starts slowly while its cost model knows nothing."""
    if len(history) < warm_up + patience:
        return False
    return not _gain(history[-patience - 1], history[-1], noise=noise)


def seconds_per_candidate(histories: Sequence[Sequence[MeasuredBatch]]) -> float:
    """The mean over all these batches; a guess while there are none."""
    batches = [batch for history in histories for batch in history]
    trials = sum(batch.trials for batch in batches)
    if trials == 0:
        return UNSEEN_SECONDS_PER_CANDIDATE
    seconds = sum(batch.seconds for batch in batches)
    return max(MIN_SECONDS_PER_CANDIDATE, seconds / trials)


def seconds_of_a_default(histories: Sequence[Sequence[MeasuredBatch]]) -> float:
    """The mean over the tasks that have had theirs; 0 while there are none."""
    seconds = [batch.default_seconds for history in histories for batch in history[:1]]
    return sum(seconds) / len(seconds) if seconds else 0.0


def _exponent(history: Sequence[MeasuredBatch], *, prior: float, noise: float) -> float:
    """Least squares of ln(best) over ln(trials), late batches weighing more, drawn to the prior.

    The first batch is left out: its gain is over the default schedule, not over a search.
    """
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


def _stalled(history: Sequence[MeasuredBatch], *, noise: float) -> float:
    """Returns how often the candidates have grown e-fold since a batch last gained more than the
    noise. Each counts against the pace as much as what was known of it before the task: a search
    that is over shows in nothing else."""
    counted = since = history[0].trials
    for before, after in pairwise(history):
        counted += after.trials
        is_first = before.best_ms is None and after.best_ms is not None
        if is_first or not since or _gain(before, after, noise=noise):
            since = counted
    return math.log(counted / since) if since else 0.0


def _gain(before: MeasuredBatch, after: MeasuredBatch, *, noise: float) -> float:
    """The gain ln(before / after), 0 within the noise. A first time after none is no measured
    gain."""
    if before.best_ms is None or after.best_ms is None or after.best_ms <= 0:
        return 0.0
    gain = math.log(before.best_ms / after.best_ms) if before.best_ms > 0 else 0.0
    return gain if gain > noise else 0.0


# The state of a task while it is tuned.

UNKNOWN_HEADROOM = 0.9
"""The share to assume that tuning can save of a task without measurements."""


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of a task between batches.

    `prior_ms` stands in until something is measured; `headroom` is the share of its time that
    tuning is expected to save at best; `flops` and `bytes_moved` are of one call; `pace` is that of
    its search; `history` holds the finished batches; `in_flight` counts candidates handed out and
    not back yet; `exhausted` means that the search has nothing new; `is_searching` that its search
    is busy, with this task or with another. `sides` are those that pay for it.
    """

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
        """Returns whether the task may get candidates, now or later."""
        return not self.exhausted and self.headroom > 0

    @property
    def trials(self) -> int:
        """Returns the number of its candidates, finished and in flight."""
        return sum(batch.trials for batch in self.history) + self.in_flight
