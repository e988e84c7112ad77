"""Pairs of blocks that count on a GPU whose clock moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tunegate.artifacts.measurements import Clocks, GpuState
from tunegate.decide.advice import busy_words
from tunegate.decide.gpu_clocks import clocks_of, kept_pairs, usual_clocks

QUIET = GpuState(sm_mhz=1500, processes=(7, 8))
COOLER = GpuState(sm_mhz=1380, processes=(7, 8), throttled=("power cap",))
HOT = GpuState(sm_mhz=1500, processes=(7, 8), throttled=("temperature (software)",))


def test_a_device_that_holds_still_drops_nothing() -> None:
    assert kept_pairs([QUIET] * 4, [QUIET] * 4) == (True,) * 4
    found = clocks_of([QUIET] * 4, [QUIET] * 4)
    assert found == Clocks(base_mhz=1500, head_mhz=1500, dropped=0, is_mediated=False)


def test_a_clock_that_moves_in_one_pair_drops_that_pair() -> None:
    slower = GpuState(sm_mhz=1400, processes=(7, 8))
    assert kept_pairs([QUIET] * 4, [QUIET, slower, QUIET, QUIET]) == (True, False, True, True)


def test_one_step_of_the_clock_is_no_move() -> None:
    step = GpuState(sm_mhz=1485)
    assert all(kept_pairs([GpuState(sm_mhz=1500)] * 4, [step, GpuState(sm_mhz=1500)] * 2))


def test_a_clock_that_comes_with_the_head_counts_and_is_told() -> None:
    assert all(kept_pairs([QUIET] * 5, [COOLER] * 5))
    found = clocks_of([QUIET] * 5, [COOLER] * 5)
    assert found is not None
    assert (found.is_mediated, found.head_mhz, found.dropped) == (True, 1380, 0)
    assert found.throttled == ("power cap",)


def test_a_pair_unlike_the_others_is_dropped_beside_a_clock_that_comes_with_the_head() -> None:
    assert kept_pairs([QUIET] * 6, [COOLER] * 5 + [QUIET]) == (True,) * 5 + (False,)


def test_heat_on_both_sides_leaves_nothing() -> None:
    assert not any(kept_pairs([HOT] * 4, [HOT] * 4))


def test_a_device_at_its_power_cap_all_the_time_is_compared() -> None:
    assert all(kept_pairs([COOLER] * 4, [COOLER] * 4))


def test_heat_now_and_then_drops_the_pairs_that_had_it() -> None:
    assert kept_pairs([QUIET] * 4, [QUIET, HOT, HOT, QUIET]) == (True, False, False, True)


def test_a_process_that_comes_in_between_drops_what_it_may_have_disturbed() -> None:
    joined = GpuState(sm_mhz=1500, processes=(7, 8, 99))
    assert kept_pairs([QUIET] * 3, [QUIET, joined, QUIET]) == (True, False, True)


def test_a_part_of_a_device_that_tells_no_clock_may_still_be_disturbed() -> None:
    joined = GpuState(processes=(7, 8, 99))
    quiet = GpuState(processes=(7, 8))
    found = clocks_of([quiet, quiet], [quiet, joined])
    assert found == Clocks(base_mhz=None, head_mhz=None, dropped=1, is_mediated=False)


def test_a_device_that_tells_nothing_drops_nothing() -> None:
    assert all(kept_pairs([GpuState()] * 3, [GpuState()] * 3))
    assert clocks_of([GpuState()] * 3, [GpuState()] * 3) is None
    assert clocks_of([], []) is None


STATES = some.builds(
    GpuState,
    sm_mhz=some.none() | some.integers(300, 2000),
    throttled=some.lists(some.sampled_from(["power cap", "power brake"]), max_size=2).map(tuple),
    processes=some.just((1, 2)),
)


@given(some.lists(some.tuples(STATES, STATES), min_size=1, max_size=12))
def test_which_side_is_called_base_does_not_matter(pairs: list[tuple[GpuState, GpuState]]) -> None:
    base, head = [first for first, _ in pairs], [second for _, second in pairs]
    assert kept_pairs(base, head) == kept_pairs(head, base)


def test_most_launches_say_whether_the_clock_came_with_the_side() -> None:
    mediated = Clocks(base_mhz=1500, head_mhz=1380, dropped=1, is_mediated=True, throttled=("a",))
    steady = Clocks(base_mhz=1500, head_mhz=1500, dropped=0, is_mediated=False, throttled=("b",))
    found = usual_clocks([mediated, mediated, steady])
    assert found == Clocks(
        base_mhz=1500, head_mhz=1420, dropped=2, is_mediated=True, throttled=("a", "b")
    )
    assert usual_clocks([]) is None


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"load average": "13.70 8.00 4.00", "cores": "2"}, " (the load was 13.7 on 2 cores)"),
        ({"load average": "2.90 8.00 4.00", "cores": "2"}, ""),
        ({"load average": "20.00 1.00 1.00", "cores": "64"}, ""),
        ({"load average": "5.00 1.00 1.00", "cores": "1"}, " (the load was 5.0 on 1 core)"),
        ({"load average": "", "cores": "2"}, ""),
        ({"load average": "9.00", "cores": "some"}, ""),
        ({}, ""),
    ],
)
def test_a_disturbing_load_is_told_with_its_cores(facts: dict[str, str], said: str) -> None:
    assert busy_words(facts) == f"a quieter runner{said}"
