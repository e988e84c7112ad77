from __future__ import annotations

import pytest

from tunegate.artifacts.plans import ExpectedStep
from tunegate.system.progress.time_left import TimeLeft, load_words, plan_line, rounded, time_left

TUNE = ExpectedStep("tune", (12.0,), "tune 2 tasks in at most 12 s")
BUILD = ExpectedStep("build", (20.0, 20.0), "build 1 model")
MEASURE = ExpectedStep("measure", (40.0,), "measure 1 model")


def test_a_plan_says_what_the_cap_on_tuning_does_not_count() -> None:
    assert plan_line([TUNE, BUILD, MEASURE]) == (
        "plan: tune 2 tasks in at most 12 s, then, beyond that cap, build 1 model, measure 1 model;"
        " about 1.5 min in all"
    )
    assert plan_line([BUILD]) == "plan: build 1 model; about 40 s in all"
    assert plan_line([TUNE]) == "plan: tune 2 tasks in at most 12 s; about 10 s in all"


def test_a_machine_that_is_far_from_quiet_is_told() -> None:
    assert load_words(3.0, 2) == ""
    assert load_words(9.04, 2).startswith("the load is 9.0 on 2 cores: the plan's times are")


def test_the_time_left_is_no_number_while_a_part_overruns() -> None:
    left = TimeLeft()
    assert time_left(left, 0) == ""
    left.expect([BUILD, MEASURE])
    left.enter("build", 0)
    assert time_left(left, 10) == "about 1 min left in all"
    left.enter("build", 20)
    left.enter("measure", 40)
    assert time_left(left, 75) == "about 5 s left in all"
    assert time_left(left, 87) == "longer than expected: 47 s so far"
    assert time_left(left, 160) == "longer than expected: 2.0 min so far"


def test_what_has_a_cap_is_said_to_end_by_it_at_the_latest() -> None:
    left = TimeLeft()
    left.expect([ExpectedStep("tune", (600.0,), "tune", has_cap=True), MEASURE])
    left.enter("tune", 0)
    left.tell(480, 120)
    assert time_left(left, 120) == "at most 8.5 min left in all, less once tuning stops paying"
    left.enter("measure", 125)
    assert time_left(left, 125) == "about 40 s left in all"


def test_an_overrun_names_what_comes_after_it() -> None:
    left = TimeLeft()
    left.expect([ExpectedStep("build", (5.0,), "build"), MEASURE])
    left.enter("build", 0)
    assert time_left(left, 11) == "longer than expected: 11 s so far, then about 55 s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "5 s"), (12, "10 s"), (58, "1 min"), (80, "1.5 min"), (119, "2 min"), (700, "12 min")],
)
def test_a_duration_claims_no_more_than_is_known(seconds: float, text: str) -> None:
    assert rounded(seconds) == text
