"""The costs of a tuning run's candidates, and the share of it that was wasted."""

from __future__ import annotations

from collections.abc import Iterable

from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome

NEAR = 1.02
"""The ratio to its task's best up to which a candidate was worth measuring."""


def wasted_share(outcomes: Iterable[TaskOutcome]) -> float:
    """The share of worker seconds in candidates that did not improve the best of their task."""
    costs = [cost for each in outcomes for cost in each.costs if cost.stage == "quick"]
    return _seconds(cost for cost in costs if not cost.improved) / _seconds(costs)


def audited(outcomes: Iterable[TaskOutcome]) -> tuple[int, int]:
    """Rejected candidates that were measured, and those of them that came near the best."""
    looked = wrong = 0
    for outcome in outcomes:
        times = [c.milliseconds for c in outcome.costs if c.milliseconds is not None]
        for cost in outcome.costs:
            if cost.pick == "audit" and cost.stage == "quick":
                looked += 1
                wrong += cost.milliseconds is not None and cost.milliseconds <= NEAR * min(times)
    return looked, wrong


def _seconds(costs: Iterable[CandidateCost]) -> float:
    return sum(cost.build_seconds + cost.run_seconds for cost in costs)
