"""Time limits of children, by the budgets that the user gave."""

from __future__ import annotations

from tunegate.config import BudgetConfig, GateConfig

_BUILD_GRACE_SECONDS, _MAX_BUILD_SECONDS = 300.0, 900.0
_ANSWER_GRACE_SECONDS, _MAX_ANSWER_SECONDS = 30.0, 120.0


def build_seconds(budget: BudgetConfig) -> float:
    """The limit for one model at one step of a compiler: as long as tuning may take and five
    minutes more, at most a quarter of an hour."""
    if budget.minutes is None:
        return _MAX_BUILD_SECONDS
    return min(60 * budget.minutes + _BUILD_GRACE_SECONDS, _MAX_BUILD_SECONDS)


def answer_seconds(gate: GateConfig) -> float:
    """The limit for a measuring process, to start or to time one block: as long as its cell may
    take and half a minute more, at most two minutes."""
    return min(gate.seconds + _ANSWER_GRACE_SECONDS, _MAX_ANSWER_SECONDS)
