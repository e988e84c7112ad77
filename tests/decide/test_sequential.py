"""The whole rule on recorded launches of one model against itself, with changes added to them."""

import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.present import present
from tests.support.replayed_gates import Replayed, gates, replay
from tunegate.decide.decision import CellDecision, bounds, decide_cell
from tunegate.decide.sequential import (
    PLANNED,
    StoppingRule,
    guarded_stop,
    last_analysis,
    likely_end,
    replanned_pairs,
    stop_after,
)

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "launch_effects.json").read_text())
RULE = StoppingRule(margin_percent=3.0, analyses=PLANNED, cells=1)
RUNS = 400


def verdict(effects: list[float]) -> CellDecision:
    """One gate over these launches, stopping where the rule stops."""
    for count in range(1, len(effects) + 1):
        if stop_after(effects[:count], RULE) is not None:
            return decide_cell(
                bounds(effects[:count], analyses=len(RULE.analyses), cells=1), RULE.margin
            )
    raise AssertionError


def shares(recording: str, change_percent: float) -> dict[CellDecision, float]:
    effects = RECORDED["effects"][recording]
    center = sum(effects) / len(effects)
    rng = random.Random(5)
    counted: dict[CellDecision, int] = {"pass": 0, "fail": 0, "undecided": 0}
    for _ in range(RUNS):
        drawn = [
            rng.choice(effects) - center + math.log1p(change_percent / 100)
            for _ in range(PLANNED[-1])
        ]
        counted[verdict(drawn)] += 1
    return {decision: count / RUNS for decision, count in counted.items()}


@pytest.mark.parametrize("recording", ["aa_cnn", "aa_cnn_noisy"])
def test_no_change_passes_five_percent_fail_and_the_margin_stays_open(recording: str) -> None:
    none, margin = shares(recording, 0.0), shares(recording, 3.0)
    assert none["fail"] <= 0.01
    assert none["undecided"] <= 0.02
    assert margin["fail"] <= 0.03
    assert margin["pass"] <= 0.08
    assert shares(recording, 5.0)["fail"] >= 0.99


def test_between_looks_it_always_goes_on() -> None:
    assert stop_after([0.5] * 3, RULE) is None
    assert stop_after([0.5] * 4, RULE) == "decided"
    assert stop_after([0.5] * 5, RULE) is None


def test_the_last_look_ends_it() -> None:
    rng = random.Random(1)
    effects = [rng.gauss(0.03, 0.02) for _ in range(60)]
    assert stop_after(effects, RULE) == "budget"


def test_a_question_beyond_the_budget_is_given_up_early_but_not_on_a_few_launches() -> None:
    short = StoppingRule(margin_percent=3.0, analyses=(4, 6, 9, 13), cells=1)
    wild = [0.2, -0.15, 0.1, -0.05, 0.18, -0.2, 0.12, -0.11, 0.16]
    assert stop_after(wild[:4], short) is None
    assert stop_after(wild[:6], short) is None
    assert stop_after(wild, short) == "hopeless"
    assert stop_after(wild, RULE) is None


def test_a_budget_is_extended_where_that_is_likely_to_decide_and_only_there() -> None:
    rule = StoppingRule(margin_percent=3.0, analyses=(4, 6, 9), cells=1, paid=4)
    near = [0.0, 0.03, -0.01, 0.02]
    assert stop_after(near, rule) is None
    assert stop_after([*near, 0.002, 0.004], rule) == "decided"
    assert stop_after([0.0, 0.045, -0.03, 0.035], rule) == "budget"
    assert stop_after(near, StoppingRule(margin_percent=3.0, analyses=(4,), cells=1)) == "budget"


def test_launches_after_the_last_look_do_not_count() -> None:
    assert last_analysis(8, PLANNED) == 6
    assert last_analysis(2, PLANNED) == 2
    assert stop_after([0.1, 0.1, 0.101, 0.099, -5.0], replace(RULE, analyses=(4,))) == "decided"


def test_pairs_follow_where_the_noise_is() -> None:
    assert replanned_pairs(0.001, 0.02, start_seconds=2, pair_seconds=0.2) == 4
    assert replanned_pairs(0.05, 0.001, start_seconds=2, pair_seconds=0.2) == 24
    assert replanned_pairs(0.01, 0.0, start_seconds=2, pair_seconds=0.2) == 24


QUIET, BUSY = [0.001] * 4, [0.001, 0.001, 0.001, 0.001, 0.3, 0.3, 0.3]
BUSY_STILL = [*BUSY, 0.001, 0.3, 0.001, 0.3, 0.001]
SHORT = StoppingRule(margin_percent=3.0, analyses=(4, 8, 16), cells=1)


def test_a_busy_machine_decides_nothing_that_is_close() -> None:
    effects = [0.05, 0.051, 0.049, 0.05, 0.2, -0.1, 0.4]
    assert guarded_stop(effects[:4], QUIET, [0.001], SHORT) == "decided"
    settled = [*effects, 0.05, 0.3, 0.05, -0.3, 0.05]
    assert guarded_stop(settled, BUSY_STILL, [0.001], SHORT) == "disturbed"


def test_a_burst_is_waited_for_within_the_budget() -> None:
    effects = [0.03, 0.04, 0.02, 0.03, 0.2, -0.1, 0.4]
    assert guarded_stop(effects, BUSY, [0.001], SHORT) is None
    little = StoppingRule(margin_percent=3.0, analyses=(4, 8), cells=1, paid=4)
    assert guarded_stop(effects, BUSY, [0.001], little) == "disturbed"


def test_twenty_times_slower_has_failed_however_busy_the_machine_is() -> None:
    effects = [3.0, 3.1, 2.9, 3.0, 3.2, 2.7, 3.4]
    assert guarded_stop(effects, BUSY, [0.18, -0.2], SHORT) == "decided"


def test_a_fifth_faster_passes_on_a_busy_machine_and_no_control_can_hide_it() -> None:
    effects = [-0.2, -0.21, -0.19, -0.2, 0.3, 0.2, 0.1]
    assert guarded_stop(effects, BUSY, [0.001], SHORT) == "decided"
    assert guarded_stop(effects, BUSY, [0.001, 0.3, 0.3], SHORT) == "disturbed"


@given(
    st.lists(st.floats(0.0, 2.0), min_size=40, max_size=40),
    st.lists(st.floats(-0.2, 0.2), min_size=40, max_size=40),
    st.sampled_from([(4,), (4, 6), (4, 6, 9, 13)]),
)
def test_whatever_is_disturbed_it_comes_to_an_end(
    noises: list[float], effects: list[float], analyses: tuple[int, ...]
) -> None:
    rule = StoppingRule(margin_percent=3.0, analyses=analyses, cells=1)
    ends = 2 * analyses[-1] + 6
    assert any(
        guarded_stop(effects[:count], noises[:count], [0.0], rule) is not None
        for count in range(1, ends + 1)
    )


def test_an_end_is_projected_to_a_look_within_the_budget() -> None:
    rule = StoppingRule(margin_percent=3.0, analyses=(4, 6, 9, 13, 19), cells=1, paid=9)
    assert likely_end([0.1], rule) == 4
    assert likely_end([0.1, 0.101], rule) == 4
    assert likely_end([0.02, 0.03, 0.01, 0.02, 0.024], rule) == 9
    assert likely_end([0.02, 0.03, 0.01, 0.02, 0.024] * 2, rule) == 13
    assert likely_end([math.log(1.03) + error for error in (0.01, -0.01)], rule) == 9


@given(st.lists(st.floats(-0.5, 0.5), min_size=7, max_size=7), st.floats(0.0, 0.5))
def test_disturbed_is_decided_only_as_it_would_be_without_the_guard(
    effects: list[float], control: float
) -> None:
    if guarded_stop(effects, BUSY, [control], SHORT) == "decided":
        assert decide_cell(bounds(effects[:4], analyses=3, cells=1), SHORT.margin) != "undecided"


def test_a_pass_waits_for_the_launches_that_are_asked_for_and_a_fail_does_not() -> None:
    asked = replace(RULE, min_launches=9)
    even, slower = [0.0, 1e-4] * 4, [0.5, 0.5001] * 2
    assert stop_after(even[:4], RULE) == "decided"
    assert [stop_after(even[:size], asked) for size in (4, 6)] == [None, None]
    assert stop_after([*even, 0.0], asked) == "decided"
    assert stop_after(slower, asked) == "decided"


STEADY = [0.0005, -0.0005] * (PLANNED[-1] // 2)
REPLAYED_GATES_QUIET = [0.001] * (3 * PLANNED[-1])


@pytest.mark.parametrize(
    ("slowdown", "outcome"), [(0.0, "pass"), (0.03, "inconclusive"), (0.06, "fail")]
)
def test_a_steady_machine_decides_all_but_the_margin_at_once(slowdown: float, outcome: str) -> None:
    effects = [effect + math.log1p(slowdown) for effect in STEADY]
    found = present(replay(effects, REPLAYED_GATES_QUIET[:60], 3.0))
    assert found.outcome == outcome
    if outcome != "inconclusive":
        assert found.launches == PLANNED[0]


def test_gates_share_no_launch() -> None:
    found = gates(STEADY * 3, REPLAYED_GATES_QUIET, 0.0, 3.0)
    assert sum(each.launches for each in found) == 3 * PLANNED[-1]
    assert len(found) == 3 * PLANNED[-1] // PLANNED[0]


def test_a_launch_that_was_disturbed_is_made_up_for() -> None:
    effects = [0.0, -0.9, *STEADY]
    found = replay(effects, [0.001, 0.5, *REPLAYED_GATES_QUIET[: len(STEADY)]], 3.0)
    assert found == Replayed("pass", 5)


def test_a_series_that_ends_too_early_decides_nothing() -> None:
    assert replay([0.02, 0.03, 0.04, 0.03, 0.02], REPLAYED_GATES_QUIET[:5], 3.0) is None


@given(st.lists(st.floats(-0.02, 0.02), min_size=PLANNED[-1], max_size=PLANNED[-1]))
def test_more_slowdown_never_turns_a_fail_into_a_pass(effects: list[float]) -> None:
    before = replay(effects, REPLAYED_GATES_QUIET[:60], 3.0)
    after = present(replay([effect + 0.05 for effect in effects], REPLAYED_GATES_QUIET[:60], 3.0))
    assert not (present(before).outcome == "fail" and after.outcome == "pass")
