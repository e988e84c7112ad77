from __future__ import annotations

import pytest

from tunegate.measure.bench_messages import other
from tunegate.measure.pair_bench import launch_order

PAIRS = 12


def test_a_seed_gives_the_same_launch_again() -> None:
    assert launch_order(5, 3, PAIRS) == launch_order(5, 3, PAIRS)


def test_every_launch_of_every_run_has_inputs_of_its_own() -> None:
    seeds = {launch_order(seed, n, PAIRS).inputs for seed in range(20) for n in range(20)}
    assert len(seeds) == 400


def test_pairs_are_quartets_from_a_random_start() -> None:
    orders = [launch_order(seed, 1, PAIRS).blocks for seed in range(50)]
    for blocks in orders:
        assert len(blocks) == PAIRS
        assert all(blocks[n] == other(blocks[n - 1]) for n in range(1, PAIRS, 2))
    assert len(set(orders)) > 30


def test_either_side_starts_first_in_half_of_the_launches() -> None:
    processes = [launch_order(1, n, PAIRS).processes for n in range(400)]
    assert {tuple(sorted(each)) for each in processes} == {("base", "head")}
    assert 160 < sum(each[0] == "head" for each in processes) < 240


def test_a_launch_of_more_pairs_has_the_same_inputs() -> None:
    assert launch_order(1, 1, 4).inputs == launch_order(1, 1, 24).inputs


@pytest.mark.parametrize("cases", [1, 3, 16])
def test_launches_take_the_cases_in_turn_from_one_by_chance(cases: int) -> None:
    """Else a head that is slow in one of many may never be timed in it."""
    taken = [[launch_order(seed, n, 4).case % cases for n in range(cases)] for seed in range(60)]
    assert all(sorted(each) == list(range(cases)) for each in taken)
    assert len({each[0] for each in taken}) > cases // 2
