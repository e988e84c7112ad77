import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st
from scipy import stats

from tunegate.artifacts.verdicts import EXIT_CODES, SEVERITY, Status, worst_status
from tunegate.decide import distributions
from tunegate.decide.decision import FAIL_ERROR, Bounds, bounds, p_value, percent_interval, shares

STATUSES = get_args(Status)


def test_every_status_has_a_place_and_an_exit_code() -> None:
    assert sorted(SEVERITY) == sorted(STATUSES)
    assert sorted(EXIT_CODES) == sorted(STATUSES)


def test_exit_codes_are_those_of_the_contract() -> None:
    codes = {"pass": 0, "new": 0, "waived": 0, "fail": 1, "error": 2, "inconclusive": 3}
    assert codes | {"invalid-env": 4, "no-baseline": 5} == EXIT_CODES


@pytest.mark.parametrize("trouble", ["invalid-env", "no-baseline", "inconclusive", "waived"])
def test_a_proven_regression_is_not_hidden_behind_trouble(trouble: Status) -> None:
    assert worst_status([trouble, "fail", "pass"]) == "fail"


def test_a_wrong_build_comes_before_everything_and_nothing_at_all_passes() -> None:
    assert worst_status(["fail", "error"]) == "error"
    assert worst_status([]) == "pass"


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_only_statuses_that_end_green_end_green_together(statuses: list[Status]) -> None:
    is_green = all(EXIT_CODES[status] == 0 for status in statuses)
    assert (EXIT_CODES[worst_status(statuses)] == 0) == is_green
    assert worst_status(statuses) in statuses


@given(st.lists(st.sampled_from(STATUSES), min_size=1))
def test_a_proven_regression_ends_as_one_or_as_an_error(statuses: list[Status]) -> None:
    assert "fail" not in statuses or EXIT_CODES[worst_status(statuses)] in {1, 2}


COUNTS = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_the_bounds_are_the_exact_ones_of_the_binomial(counts: tuple[int, int]) -> None:
    over, total = counts
    low, high = distributions.lower_share(over, total), distributions.upper_share(over, total)
    assert low <= over / total <= high
    if over < total:
        assert stats.binom.cdf(over, total, high) == pytest.approx(0.05, abs=1e-6)
    if over:
        assert stats.binom.sf(over - 1, total, low) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize(
    ("over", "total", "decision"),
    [(0, 299, "pass"), (0, 298, "undecided"), (2, 100, "undecided"), (20, 300, "fail")],
)
def test_ninety_nine_percent(over: int, total: int, decision: str) -> None:
    assert distributions.decide_objective(over, total, 99.0) == decision


@pytest.mark.parametrize(
    ("percentile", "needed"), [(50.0, 5), (90.0, 29), (99.0, 299), (99.9, 2995)]
)
def test_the_fewest_inferences_that_can_pass(percentile: float, needed: int) -> None:
    assert distributions.inferences_needed(percentile) == needed
    assert distributions.decide_objective(0, needed, percentile) == "pass"
    assert distributions.decide_objective(0, needed - 1, percentile) == "undecided"


# Cells that share the error of a fail.

MARGIN = math.log1p(0.03)
CHANCES = some.lists(some.floats(0, 1), min_size=1, max_size=8)


def test_a_cell_alone_has_all_of_the_error() -> None:
    assert shares([0.5]) == (1,)


def test_after_the_clearest_has_failed_the_next_shares_with_one_less() -> None:
    assert shares([0.003, 0.0001, 0.9]) == (2, 3, 1)


def test_after_one_that_is_not_clear_nobody_fails_who_would_not_have() -> None:
    assert shares([0.004, 0.0045, 0.0048]) == (3, 3, 3)


@given(CHANCES)
def test_no_cell_shares_with_too_many_and_one_shares_with_all(p_values: list[float]) -> None:
    found = shares(p_values)
    assert max(found) == len(p_values)
    assert min(found) >= 1


@given(CHANCES)
def test_whoever_fails_by_an_even_split_fails_here_too(p_values: list[float]) -> None:
    for chance, share in zip(p_values, shares(p_values), strict=True):
        if chance <= FAIL_ERROR / len(p_values):
            assert chance <= FAIL_ERROR / share


@given(
    some.lists(some.floats(-0.2, 0.3), min_size=4, max_size=20),
    some.integers(1, 8),
    some.integers(1, 9),
)
def test_the_chance_agrees_with_the_bound(effects: list[float], analyses: int, cells: int) -> None:
    chance = p_value(effects, margin=MARGIN, analyses=analyses)
    low = bounds(effects, analyses=analyses, cells=cells).low
    if abs(low - MARGIN) > 1e-9:
        assert (chance < FAIL_ERROR / cells) == (low > MARGIN)


@pytest.mark.parametrize("cells", [3, 8])
def test_of_cells_on_the_margin_hardly_one_family_in_a_hundred_fails(cells: int) -> None:
    """Half of the cells are far over the margin, which is what gives the others a larger share."""
    random = np.random.default_rng(7)
    families, wrong = 4000, 0
    for _ in range(families):
        true = [MARGIN] * (cells - cells // 2) + [0.2] * (cells // 2)
        p_values = [
            p_value(random.normal(mean, 0.01, 6).tolist(), margin=MARGIN, analyses=1)
            for mean in true
        ]
        fails = [c <= FAIL_ERROR / s for c, s in zip(p_values, shares(p_values), strict=True)]
        wrong += any(fails[: cells - cells // 2])
    assert wrong / families <= FAIL_ERROR + 3 * math.sqrt(FAIL_ERROR / families)


def test_bounds_are_told_in_percent_and_what_is_endless_stays_a_number() -> None:
    found = percent_interval(Bounds(low=0.0, center=math.log(1.1), high=math.inf, spread=0.1))
    assert found.low == 0.0
    assert found.center == pytest.approx(10.0)
    assert math.isfinite(found.high)
