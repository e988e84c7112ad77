"""A roofline drawn by the tasks of the run themselves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.next_task import Work, roofline_gaps

works = st.lists(
    st.builds(
        Work,
        st.floats(0, 1e12),
        st.floats(0, 1e9),
        st.one_of(st.none(), st.floats(1e-4, 1e4)),
    ),
    max_size=20,
)


def test_the_fastest_task_is_behind_nobody() -> None:
    assert roofline_gaps([Work(1e9, 0, 10.0), Work(1e9, 0, 40.0)]) == [
        0.0,
        pytest.approx(math.log(4)),
    ]


def test_what_moves_many_bytes_is_measured_by_bytes() -> None:
    copying = Work(0, 4e6, 1.0)
    assert roofline_gaps([Work(1e9, 1e6, 10.0), copying, Work(0, 1e6, 1.0)]) == [
        0.0,
        0.0,
        pytest.approx(math.log(4)),
    ]


def test_of_a_task_without_a_time_nothing_is_known() -> None:
    assert roofline_gaps([Work(1e9, 0, None), Work(1e9, 0, 1.0)]) == [0.0, 0.0]


def test_a_fraction_of_an_operation_is_no_infinite_gap() -> None:
    assert roofline_gaps([Work(5e-324, 0, 1.0), Work(1e9, 0, 1.0)]) == [0.0, 0.0]


@given(works)
def test_no_gap_is_infinite(tasks: list[Work]) -> None:
    assert all(math.isfinite(gap) for gap in roofline_gaps(tasks))


@given(works)
def test_somebody_is_always_in_front(tasks: list[Work]) -> None:
    gaps = roofline_gaps(tasks)
    assert all(gap >= 0 for gap in gaps)
    known = [gap for gap, work in zip(gaps, tasks, strict=True) if work.best_ms]
    assert not known or min(known) == pytest.approx(0.0)


@given(works, st.floats(0.001, 1000))
def test_a_machine_that_is_slower_in_all_changes_nothing(tasks: list[Work], factor: float) -> None:
    slower = [w._replace(best_ms=w.best_ms and w.best_ms * factor) for w in tasks]
    assert roofline_gaps(slower) == pytest.approx(roofline_gaps(tasks), abs=1e-6)
