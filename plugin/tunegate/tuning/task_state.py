"""The state of a task while it is tuned."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.changes import ModelSide
from tunegate.tuning.improvement import FROM_NOTHING, MeasuredBatch, Pace

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
