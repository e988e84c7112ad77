from __future__ import annotations

import pytest

from tests.support.tuning_tasks import make_outcome, make_record
from tunegate.tune.expected_time import answers_next_run
from tunegate_cache.format.records import TuningRecord


@pytest.mark.parametrize(
    ("records", "is_answer"),
    [
        ((), False),
        ((make_record("a", times=3),), False),
        ((make_record("a"),), True),
        ((make_record("other"),), False),
    ],
)
def test_only_its_own_confirmed_record_is_an_answer(
    records: tuple[TuningRecord, ...], is_answer: bool
) -> None:
    assert answers_next_run(make_outcome("a", records=records)) == is_answer
