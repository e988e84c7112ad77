"""The remaining budget of one tuning run."""

from __future__ import annotations

from tunegate.artifacts.plans import Budget
from tunegate.ports import Clock
from tunegate.tuning.next_task import RemainingBudget

_CONFIRM_SHARE, _CONFIRM_SECONDS_PER_TASK = 0.15, 1.0
_ENDING_SHARE, _MOST_ENDING_SECONDS = 0.05, 1.0
"""Workers take time to end: 0.6 s of 18 were seen beside other runs, and the cap holds for it."""


class BudgetMeter:
    """The seconds count from here on."""

    def __init__(self, budget: Budget, clock: Clock) -> None:
        self.budget, self.clock = budget, clock
        self._started = clock.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """The seconds that are left before the end begins, negative when they are over; None where
        nothing limits them."""
        cap = self.budget.seconds
        return None if cap is None else cap - _ending_seconds(cap) - self._spent()

    def is_out(self, reserve: float = 0.0) -> bool:
        """Returns whether no more than the `reserve` is left."""
        left = self.seconds_left
        return left is not None and left <= reserve

    def trials_left(self, used: int) -> int | None:
        """The trials that are left, or None where nothing limits them."""
        return None if self.budget.trials is None else max(0, self.budget.trials - used)

    def left(self, used: int, reserve: float) -> RemainingBudget:
        """Returns the budget of the next batch, after `used` trials."""
        seconds = self.seconds_left
        return RemainingBudget(
            trials=self.trials_left(used),
            seconds=None if seconds is None else max(0.0, seconds - reserve),
            spent_seconds=self._spent(),
        )

    def confirmation_seconds(self, tasks: int) -> float:
        """Returns the seconds reserved for measuring the winners of so many tasks again."""
        seconds = self.budget.seconds
        if seconds is None:
            return 0.0
        return min(_CONFIRM_SHARE * seconds, 2.0 + _CONFIRM_SECONDS_PER_TASK * tasks)

    def _spent(self) -> float:
        return self.clock.monotonic() - self._started


def _ending_seconds(cap: float) -> float:
    return min(_ENDING_SHARE * cap, _MOST_ENDING_SECONDS)
