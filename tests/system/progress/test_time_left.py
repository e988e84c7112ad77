import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress.time_left import TimeLeft

STEPS = (
    ExpectedStep("tune", (60.0,), "tune"),
    ExpectedStep("build", (10.0,), "build"),
    ExpectedStep("measure", (30.0,), "measure"),
)


def expecting(*steps: ExpectedStep) -> TimeLeft:
    left = TimeLeft()
    left.expect(steps)
    return left


def test_the_cap_of_tuning_counts_more_than_what_was_expected() -> None:
    left = expecting(*STEPS)
    left.enter("tune", 0)
    left.tell(100, 5)
    assert left.seconds(5) == 140
    left.tell(None, 7)
    assert left.seconds(25) == 120
    assert left.seconds_late(109) is None
    assert left.seconds(500) == 40
    assert left.seconds_late(500) == 500
    left.enter("measure", 500)
    assert left.seconds(500) == 30


def test_what_another_part_says_of_itself_is_held_against_what_was_expected() -> None:
    """A gate that may need two minutes decides in twenty seconds."""
    left = expecting(*STEPS)
    left.enter("measure", 0)
    left.tell(90, 0)
    assert left.seconds(0) == pytest.approx((90 * 30) ** 0.5)
    left.tell(90, 20)
    assert 30 < (left.seconds(20) or 0) < 90
    assert left.seconds_late(100) is None
    assert left.seconds_late(125) == 125


@given(st.floats(0.1, 1e4), st.floats(0, 1e4), st.floats(0, 1e4))
def test_a_part_that_took_what_was_expected_is_believed_what_it_says_of_itself(
    expected: float, over: float, told: float
) -> None:
    """Runs before may have been shorter: they know nothing of what this one still needs."""
    left = expecting(ExpectedStep("measure", (expected,), "measure"))
    left.enter("measure", 0)
    now = expected + over
    left.tell(told, now)
    assert left.seconds(now) == pytest.approx(told)


def test_a_step_that_was_not_expected_changes_nothing() -> None:
    left = expecting(*STEPS)
    left.enter("build", 0)
    left.enter("choose", 1)
    left.enter(None, 2)
    left.enter("tune", 3)
    assert left.place == "[2/3] "
    assert left.seconds(4) == 36


def test_an_overdue_part_has_more_to_come_and_later_steps_a_share_of_it() -> None:
    left = expecting(*STEPS)
    left.enter("build", 0)
    assert left.seconds(7) == 33
    assert left.seconds(30) == pytest.approx(5.5 + 30 * (1 + 25.5 / 40))
    left.enter("measure", 30)
    assert left.seconds(30) == pytest.approx(30 * (1 + 20 / 40))
