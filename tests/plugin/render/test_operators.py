from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reports import make_report
from tunegate.artifacts.measurements import TaskDifference
from tunegate.render.operators import parts, tuned_rows

TIMES = st.none() | st.floats(min_value=0.001, max_value=100)
DIFFERENCES = st.lists(
    st.builds(
        TaskDifference,
        name=st.text(min_size=1, max_size=5),
        base_ms=TIMES,
        head_ms=TIMES,
        source=st.sampled_from(["exact", "transfer", "search", "default"]),
    ),
    max_size=12,
)


@given(DIFFERENCES)
def test_the_shares_of_what_got_slower_add_up_to_one(differences: list[TaskDifference]) -> None:
    slower = [part.share for part in parts(differences) if part.difference_ms > 0]
    assert not slower or sum(slower) == pytest.approx(1)


@given(DIFFERENCES)
def test_the_parts_add_up_to_the_whole_difference(differences: list[TaskDifference]) -> None:
    whole = sum(each.difference_ms for each in differences)
    assert sum(part.difference_ms for part in parts(differences)) == pytest.approx(whole, abs=1e-9)


def test_the_largest_difference_comes_first() -> None:
    found = parts(make_report("slowed").verdict.findings[0].differences)
    assert [part.name for part in found] == [
        "fire2/expand3x3, fire3/expand3x3",
        "fire5/expand3x3",
        "pool1",
    ]


def test_the_task_that_saved_most_comes_first_with_its_weight() -> None:
    first = tuned_rows(make_report("slowed"))[0]
    assert (first.name, first.weight, first.source) == ("fire5/expand3x3", 2, "tuned now")
    assert first.gain_percent == pytest.approx(83.0, abs=0.1)
    assert first.failures == "2 compile, 1 timeout"
