from __future__ import annotations

from tunegate.artifacts.tasks import ForeignSchedule


def test_a_schedule_claims_the_median_of_its_times() -> None:
    schedule = ForeignSchedule(
        kind="llvm",
        arguments=(),
        instructions=(),
        decisions=(),
        run_nanoseconds=(3_000_000, 1_000_000, 9_000_000),
    )
    assert schedule.median_ms == 3.0
