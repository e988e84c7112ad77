from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.expected_steps import ExpectedStep
from tunegate.edges.progress.time_left import TimeLeft, rounded

STEPS = (
    ExpectedStep("tune", 60, "tune"),
    ExpectedStep("build", 10, "build"),
    ExpectedStep("measure", 30, "measure"),
)


def expecting(*steps: ExpectedStep) -> TimeLeft:
    left = TimeLeft()
    left.expect(steps)
    return left


def test_nothing_is_known_without_a_plan() -> None:
    left = TimeLeft()
    left.enter("tune")
    assert (left.place, left.seconds(5)) == ("", None)


def test_a_step_is_one_of_so_many_and_the_later_ones_are_still_to_come() -> None:
    left = expecting(*STEPS)
    left.enter("tune")
    assert (left.place, left.seconds(20)) == ("[1/3] ", 80)
    left.enter("measure")
    assert (left.place, left.seconds(0)) == ("[3/3] ", 30)


def test_what_a_step_says_of_itself_counts_more_than_what_was_expected() -> None:
    left = expecting(*STEPS)
    left.enter("build")
    left.tell(100, 5)
    assert left.seconds(5) == 130
    left.tell(None, 7)
    assert left.seconds(25) == 110
    assert left.seconds(500) == 30
    left.enter("measure")
    assert left.seconds(0) == 30


def test_a_step_that_was_not_expected_changes_nothing() -> None:
    left = expecting(*STEPS)
    left.enter("build")
    left.enter("choose")
    left.enter(None)
    assert left.place == "[2/3] "


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_end_never_comes_nearer_than_it_was(first: float, later: float) -> None:
    left = expecting(*STEPS)
    left.enter("tune")
    sooner, after = sorted((first, later))
    ends = [(left.seconds(elapsed) or 0) + elapsed for elapsed in (sooner, after)]
    assert 100 * (1 - 1e-9) <= ends[0] <= ends[1] * (1 + 1e-9)


def test_an_overdue_step_has_more_to_come_and_the_later_ones_a_part_of_it() -> None:
    left = expecting(*STEPS)
    left.enter("tune")
    assert left.seconds(57) == 43
    assert left.seconds(60) == pytest.approx(3 + 40 * (1 + 3 / 240))
    assert left.seconds(180) == pytest.approx(33 + 40 * (1 + 153 / 240))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "5 s"), (12, "10 s"), (58, "1 min"), (80, "1.5 min"), (119, "2 min"), (700, "12 min")],
)
def test_a_duration_claims_no_more_than_is_known(seconds: float, text: str) -> None:
    assert rounded(seconds) == text
