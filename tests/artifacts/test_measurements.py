from __future__ import annotations

from tunegate.artifacts.measurements import TaskDifference


def difference_ms(base_ms: float | None, head_ms: float | None) -> float:
    return TaskDifference(
        name="conv", base_ms=base_ms, head_ms=head_ms, source="search"
    ).difference_ms


def test_an_operator_that_one_side_does_not_have_takes_no_time_there() -> None:
    assert difference_ms(1.0, 3.0) == 2.0
    assert difference_ms(None, 3.0) == 3.0
    assert difference_ms(1.0, None) == -1.0
