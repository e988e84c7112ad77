from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.verdicts import EXIT_CODES, SEVERITY, Status, worst

STATUSES = get_args(Status)


def test_every_status_has_a_place_and_an_exit_code() -> None:
    assert sorted(SEVERITY) == sorted(STATUSES)
    assert sorted(EXIT_CODES) == sorted(STATUSES)


def test_exit_codes_are_those_of_the_contract() -> None:
    codes = {"pass": 0, "new": 0, "waived": 0, "fail": 1, "error": 2, "inconclusive": 3}
    assert codes | {"invalid-env": 4, "no-baseline": 5} == EXIT_CODES


@pytest.mark.parametrize("trouble", ["invalid-env", "no-baseline", "inconclusive", "waived"])
def test_a_proven_regression_is_not_hidden_behind_trouble(trouble: Status) -> None:
    assert worst([trouble, "fail", "pass"]) == "fail"


def test_a_wrong_build_comes_before_everything_and_nothing_at_all_passes() -> None:
    assert worst(["fail", "error"]) == "error"
    assert worst([]) == "pass"


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_only_statuses_that_end_green_end_green_together(statuses: list[Status]) -> None:
    is_green = all(EXIT_CODES[status] == 0 for status in statuses)
    assert (EXIT_CODES[worst(statuses)] == 0) == is_green
    assert worst(statuses) in statuses


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_a_proven_regression_ends_as_one_or_as_an_error(statuses: list[Status]) -> None:
    assert "fail" not in statuses or EXIT_CODES[worst(statuses)] in {1, 2}
