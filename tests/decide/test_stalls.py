from __future__ import annotations

import math
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.measured_cells import make_launches
from tunegate.artifacts.measurements import Inside, Launch, Stalls
from tunegate.decide.checks import _tests as told
from tunegate.decide.histogram import histogram
from tunegate.decide.inside_launch import inside
from tunegate.decide.stalls import (
    WANTED_INFERENCES,
    chance_of,
    largest_share,
    one_in,
    stalls_of,
    total_stalls,
    wanted_pairs,
)

Blocks = list[list[float]]
NONE = Stalls(times=5.0, base=0, head=0, base_worse=0, head_worse=0, inferences=WANTED_INFERENCES)


def head_alone(count: int, inferences: int) -> Stalls:
    """So many quartets have a stall of the head, and none of the base."""
    seen = msgspec.structs.replace(NONE, head=count, head_worse=count)
    return msgspec.structs.replace(seen, inferences=inferences)


def blocks(rng: random.Random, rate: float, slow: float, burst: int = 1) -> Blocks:
    """Twelve blocks of a hundred inferences; a stall takes `burst` of them in a row."""
    found = []
    for _ in range(12):
        times = [rng.gauss(1.0, 0.02) for _ in range(100)]
        for at in range(100):
            if rng.random() < rate:
                times[at : at + burst] = [slow * time for time in times[at : at + burst]]
        found.append(times[:100])
    return found


def launch(rng: random.Random, base: float, head: float, slow: float, burst: int = 1) -> Launch:
    before, after = blocks(rng, base, slow, burst), blocks(rng, head, slow, burst)
    return msgspec.structs.replace(
        make_launches([rng.gauss(0.0, 0.001)])[0],
        mean_effect=rng.gauss(0.0, 0.001),
        base_times=histogram([time for block in before for time in block]),
        head_times=histogram([time for block in after for time in block]),
        stalls=stalls_of(before, after),
    )


def launches(
    count: int, base: float, head: float, slow: float = 100.0, burst: int = 1, seed: int = 1
) -> list[Launch]:
    rng = random.Random(seed)
    return [launch(rng, base, head, slow, burst) for _ in range(count)]


def by_all(found: list[Launch]) -> Inside:
    tests = inside(found, margin=math.log(1.1), analyses=8, cells=1)
    return next(each for each in tests if each.what == "mean-of-all")


def test_stalls_of_the_head_alone_fail_where_the_machine_is_quiet() -> None:
    found = by_all(launches(6, base=0.0, head=1 / 200))
    assert found.decision == "fail"
    assert "stalls of 5x, where the base has 0" in told([found])


def test_stalls_of_the_head_fail_among_those_of_a_busy_machine() -> None:
    """The machine's own make the mean unresolvable: only the counts of both sides tell."""
    found = by_all(launches(9, base=1 / 800, head=1 / 100))
    assert not found.is_resolved
    assert found.decision == "fail"


def test_long_stalls_of_the_head_stand_out_from_short_ones_of_the_machine() -> None:
    """One inference in 35 waits for its turn on the core, seven times as long, on either side."""
    rng = random.Random(2)
    found = []
    for _ in range(6):
        sides = [blocks(rng, 1 / 35, 7.0) for _ in range(2)]
        longer = [[100.0 if rng.random() < 1 / 200 else time for time in b] for b in sides[1]]
        clean = launch(rng, 0.0, 0.0, 1.0)
        found.append(msgspec.structs.replace(clean, stalls=stalls_of(sides[0], longer)))
    assert by_all(found).decision == "fail"


@pytest.mark.parametrize("seed", range(8))
def test_bursts_of_a_busy_machine_never_fail(seed: int) -> None:
    found = by_all(launches(9, base=1 / 300, head=1 / 300, burst=12, seed=seed))
    assert found.decision != "fail"


def test_a_few_stalls_too_many_hold_up_a_pass_until_it_is_known() -> None:
    """Five quartets against none: one chance in 32."""
    one = Stalls(times=5.0, base=0, head=3, base_worse=0, head_worse=3, inferences=1200)
    other = Stalls(times=5.0, base=0, head=2, base_worse=0, head_worse=2, inferences=1200)
    clean = launches(2, base=0.0, head=0.0)
    some = [
        msgspec.structs.replace(x, stalls=(s,)) for x, s in zip(clean, (one, other), strict=True)
    ]
    assert by_all(some).decision == "undecided"
    assert by_all(clean).decision == "pass"


def test_stalls_too_rare_for_the_tail_and_too_short_for_the_mean_are_told_and_pass() -> None:
    """Ten in a hundred thousand inferences leave p99.9 where it was."""
    rare = head_alone(10, 50_000)
    found = by_all([msgspec.structs.replace(x, stalls=(rare,)) for x in launches(2, 0.0, 0.0)])
    assert found.decision == "pass"
    assert one_in(found.stalls[0]) < 10_000


def test_both_sides_of_a_quartet_slowed_by_one_burst_say_nothing() -> None:
    quick, slow = [1.0] * 20, [1.0] * 19 + [50.0]
    found, _, largest = stalls_of([slow, quick, quick, quick], [slow, quick, slow, quick])
    assert largest.head == 0
    assert (found.base_worse, found.head_worse) == (0, 1)
    assert (found.base, found.head, found.inferences) == (1, 2, 80)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_chance_is_that_of_a_fair_coin(base_worse: int, head_worse: int) -> None:
    found = Stalls(
        times=5.0, base=0, head=0, base_worse=base_worse, head_worse=head_worse, inferences=1
    )
    coins = base_worse + head_worse
    exact = sum(math.comb(coins, heads) for heads in range(head_worse, coins + 1)) / 2**coins
    assert chance_of(found) == pytest.approx(exact)


def test_no_stall_in_4500_inferences_excludes_one_in_1500() -> None:
    none = Stalls(
        times=5.0, base=0, head=0, base_worse=0, head_worse=0, inferences=WANTED_INFERENCES
    )
    assert one_in(none) == 1500
    assert largest_share(msgspec.structs.replace(none, head=3)) > 3 / WANTED_INFERENCES


def test_a_launch_of_an_older_measurement_leaves_the_counts_unknown() -> None:
    assert total_stalls(make_launches([0.0, 0.0])) == ()
    known = launches(2, 0.0, 0.0)
    older = msgspec.structs.replace(known[0], stalls=())
    assert total_stalls([older, known[1]]) == ()
    assert [each.times for each in total_stalls(known)] == [5.0, 15.0, 50.0]


def measured(ms: float, inferences: int) -> Launch:
    seen = msgspec.structs.replace(NONE, inferences=inferences)
    return msgspec.structs.replace(make_launches([0.0])[0], head_ms=ms, stalls=(seen,))


@pytest.mark.parametrize(
    ("ms", "inferences", "pair_seconds", "pairs"),
    [
        (2.0, 300, 0.1, 56),  # 1,400 more in each of three launches, 25 a block
        (2.0, 300, 0.5, 16),  # what 24 s pay
        (0.1, 6000, 0.1, 12),  # it has seen enough
        (10.0, 240, 0.4, 12),  # thousands of these would take a minute
    ],
)
def test_a_fast_model_is_run_thousands_of_times_where_the_budget_pays(
    ms: float, inferences: int, pair_seconds: float, pairs: int
) -> None:
    first = measured(ms, inferences)
    assert wanted_pairs(12, first, 3, pair_seconds=pair_seconds, seconds=24.0) == pairs
