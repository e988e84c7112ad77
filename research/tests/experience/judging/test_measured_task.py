from __future__ import annotations

from tests.tune.test_prior import experience

from research.experience.judging.measured_task import in_columns
from tunegate.tune.prior import NEST_COLUMNS


def test_each_candidate_is_a_row_with_its_time() -> None:
    found = in_columns(experience())
    assert found.columns.shape == (30, NEST_COLUMNS)
    assert found.milliseconds.tolist() == [milliseconds for _, milliseconds, _ in experience().rows]
