"""The end-to-end estimate counts every task."""

from __future__ import annotations

from tunegate.tune.headroom import end_to_end_ms, extended
from tunegate.tune.improvement import TaskState


def test_all_tasks_count_measured_exhausted_or_never_started() -> None:
    states = [
        TaskState(weight=2, prior_ms=10.0, best_ms=1.5),
        TaskState(weight=1, prior_ms=4.0),
        TaskState(weight=3, prior_ms=9.0, best_ms=2.0, exhausted=True),
    ]
    assert end_to_end_ms(states) == 2 * 1.5 + 4.0 + 3 * 2.0


def test_the_curve_grows_only_when_the_estimate_moves() -> None:
    curve = extended(((0.0, 10.0),), seconds=3.0, estimate_ms=10.0)
    assert extended(curve, seconds=5.0, estimate_ms=8.0) == ((0.0, 10.0), (5.0, 8.0))
