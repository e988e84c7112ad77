import math
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.measured_cells import make_launches
from tests.support.simulated.simulated_launches import launch_of
from tunegate.artifacts.histogram import histogram
from tunegate.artifacts.measurements import Inside, Launch, Stalls
from tunegate.decide import stalls
from tunegate.decide.checks import _tests
from tunegate.decide.decision import hodges_lehmann, launch_effect, within_spread
from tunegate.decide.inside_launch import inside

Blocks = list[list[float]]
NONE = Stalls(
    times=5.0, base=0, head=0, base_worse=0, head_worse=0, inferences=stalls.WANTED_INFERENCES
)


def head_alone(count: int, inferences: int) -> Stalls:
    """So many quartets have a stall of the head, and none of the base."""
    return replace(NONE, head=count, head_worse=count, inferences=inferences)


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
    return replace(
        make_launches([rng.gauss(0.0, 0.001)])[0],
        mean_effect=rng.gauss(0.0, 0.001),
        base_times=histogram([time for block in before for time in block]),
        head_times=histogram([time for block in after for time in block]),
        stalls=stalls.stalls_of(before, after),
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
    assert "stalls of 5x, where the base has 0" in _tests([found])


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
        found.append(replace(clean, stalls=stalls.stalls_of(sides[0], longer)))
    assert by_all(found).decision == "fail"


@pytest.mark.parametrize("seed", range(8))
def test_bursts_of_a_busy_machine_never_fail(seed: int) -> None:
    assert by_all(launches(9, base=1 / 300, head=1 / 300, burst=12, seed=seed)).decision != "fail"


def test_a_head_within_a_wide_margin_may_meet_more_stalls_of_the_machine() -> None:
    """A busy machine stops a process once in so many milliseconds, not in so many inferences."""

    def stopped(usual_ms: float, start: float) -> Blocks:
        times = [usual_ms] * 1200
        for at in np.arange(start, 1200 * usual_ms, 9):
            times[int(at / usual_ms)] = 50.0
        return [times[n : n + 100] for n in range(0, 1200, 100)]

    found = [stalls.stalls_of(stopped(1.0, x), stopped(1.1, 9 - x)) for x in range(8)]
    seen = stalls.total_stalls([replace(make_launches([0.0])[0], stalls=each) for each in found])
    assert seen[0].head > 1.05 * seen[0].base
    assert stalls.chance_of(seen[0]) > 0.01


@pytest.mark.parametrize("slower", [1.0, 1.1, 1.45])
def test_the_chance_of_a_slower_head_is_one_on_a_busy_machine(slower: float) -> None:
    """The machine holds up either side for as long, and as often in a second."""

    def stopped(rng: np.random.Generator, usual_ms: float) -> Blocks:
        times = np.full((12, 100), usual_ms)
        is_stopped = rng.random(times.shape) < usual_ms / 60
        stopped_ms = is_stopped * rng.exponential(20.0, times.shape)
        return [list(map(float, block)) for block in times + stopped_ms]

    def chances(seed: int) -> list[float]:
        rng = np.random.default_rng(seed)
        found = [stalls.stalls_of(stopped(rng, 1.0), stopped(rng, slower)) for _ in range(15)]
        return [stalls.chance_of(stalls._sum_stalls(sizes)) for sizes in zip(*found, strict=True)]

    below = np.mean([[chance <= 0.05 for chance in chances(seed)] for seed in range(40)], axis=0)
    assert max(below) <= 0.125  # of forty, 5% and three standard deviations


def test_a_size_that_matters_fails_beside_one_that_is_clearer_and_does_not_matter() -> None:
    frequent = Stalls(times=5.0, base=20, head=60, base_worse=8, head_worse=40, inferences=24_000)
    rare = Stalls(times=50.0, base=0, head=20, base_worse=0, head_worse=20, inferences=24_000)
    assert stalls.chance_of(rare) < stalls.chance_of(frequent)
    some = [replace(x, stalls=()) for x in launches(2, 0.0, 0.0)]
    halves = [tuple(_half(each) for each in (frequent, rare)) for _ in some]
    both = [replace(x, stalls=s) for x, s in zip(some, halves, strict=True)]
    assert by_all(both).decision == "fail"


def _half(seen: Stalls) -> Stalls:
    fields = ("base", "head", "base_worse", "head_worse", "inferences")
    return replace(seen, **{name: getattr(seen, name) // 2 for name in fields})


def test_a_few_stalls_too_many_hold_up_a_pass_until_it_is_known() -> None:
    """Five quartets against none: one chance in 32."""
    clean = launches(2, base=0.0, head=0.0)
    seen = (head_alone(3, 1200), head_alone(2, 1200))
    some = [replace(x, stalls=(s,)) for x, s in zip(clean, seen, strict=True)]
    assert by_all(some).decision == "undecided"
    assert by_all(clean).decision == "pass"


def test_stalls_too_rare_for_the_tail_and_too_short_for_the_mean_are_told_and_pass() -> None:
    """Ten in a hundred thousand inferences leave p99.9 where it was."""
    rare = head_alone(10, 50_000)
    found = by_all([replace(x, stalls=(rare,)) for x in launches(2, 0.0, 0.0)])
    assert found.decision == "pass"
    assert stalls.one_in(found.stalls[0]) < 10_000


def test_both_sides_of_a_quartet_slowed_by_one_burst_say_nothing() -> None:
    quick, slow = [1.0] * 20, [1.0] * 19 + [50.0]
    found, _, largest = stalls.stalls_of([slow, quick, quick, quick], [slow, quick, slow, quick])
    assert largest.head == 0
    assert (found.base_worse, found.head_worse) == (0, 1)
    assert (found.base, found.head, found.inferences) == (1, 2, 80)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_chance_is_that_of_a_fair_coin(base_worse: int, head_worse: int) -> None:
    found = replace(NONE, base_worse=base_worse, head_worse=head_worse)
    coins = base_worse + head_worse
    exact = sum(math.comb(coins, heads) for heads in range(head_worse, coins + 1)) / 2**coins
    assert stalls.chance_of(found) == pytest.approx(exact)


def test_no_stall_in_4500_inferences_excludes_one_in_1500() -> None:
    assert stalls.one_in(NONE) == 1500
    assert stalls.largest_share(replace(NONE, head=3)) > 3 / stalls.WANTED_INFERENCES


def test_a_launch_of_an_older_measurement_leaves_the_counts_unknown() -> None:
    assert stalls.total_stalls(make_launches([0.0, 0.0])) == ()
    known = launches(2, 0.0, 0.0)
    assert stalls.total_stalls([replace(known[0], stalls=()), known[1]]) == ()
    assert [each.times for each in stalls.total_stalls(known)] == [5.0, 15.0, 50.0]


def measured(ms: float, inferences: int) -> Launch:
    seen = replace(NONE, inferences=inferences)
    return replace(make_launches([0.0])[0], head_ms=ms, stalls=(seen,))


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
    wanted = stalls.wanted_pairs(
        12, [first], 3, inferences=stalls.WANTED_INFERENCES, pair_seconds=pair_seconds, seconds=24.0
    )
    assert wanted == pairs


MARGIN = math.log(1.1)


def judged(found: list[Launch]) -> tuple[Inside, ...]:
    return inside(found, margin=MARGIN, analyses=1, cells=1)


def six_launches() -> Iterator[tuple[int, Launch]]:
    return enumerate(inside_launch_launches(1.0, 0.001, count=6))


def inside_launch_launches(
    slower_tail: float,
    spread: float,
    count: int = 9,
    own_tail: float = 0.0,
    head_tail: float | None = None,
) -> list[Launch]:
    """One in fifty inferences of the head takes that much longer; `spread` is of processes,
    `own_tail` of the tails of both sides, `head_tail` of those of the head."""
    rng = random.Random(4)

    def times(tail: float, scatter: float = own_tail) -> list[float]:
        speed = rng.gauss(1.0, spread)
        usual = [speed * rng.gauss(5.0, 0.02) for _ in range(490)]
        slow = tail * math.exp(rng.gauss(0.0, scatter))
        return [*usual, *(speed * rng.gauss(5.0 * slow, 0.02) for _ in range(10))]

    return [
        replace(
            launch,
            base_times=histogram(times(1.0)),
            head_times=histogram(times(slower_tail, own_tail if head_tail is None else head_tail)),
        )
        for launch in make_launches([0.0] * count)
    ]


def test_a_slower_tail_shows_in_the_tail_only() -> None:
    ninety, last = judged(inside_launch_launches(1.5, 0.001))
    assert (ninety.what, last.what) == ("p90", "p99")
    assert abs(ninety.change_percent.center) < 1.0
    assert ninety.decision == "pass"
    assert last.change_percent.low > 30
    assert last.decision == "fail"
    assert last.head_ms == pytest.approx(7.5, rel=0.03)


def test_a_percentile_that_no_inference_of_a_launch_lies_beyond_is_not_told() -> None:
    """The hundredth percentile is beyond every one of 60 inferences: a pass must not claim p99."""
    few = histogram([5.0] * 60)
    found = [
        replace(launch, head_times=few) for launch in inside_launch_launches(1.0, 0.001, count=6)
    ]
    ninety, last = judged(found)
    assert (ninety.is_resolved, last.is_resolved) == (True, False)


def test_where_the_base_scatters_too_much_a_tail_is_not_resolvable_and_holds_nothing_up() -> None:
    last = judged(inside_launch_launches(1.2, 0.001, own_tail=0.4))[-1]
    assert (last.is_resolved, last.decision) == (False, "pass")
    assert all(each.is_resolved for each in judged(inside_launch_launches(1.0, 0.001)))


def test_a_head_that_scatters_by_itself_does_not_buy_a_way_out() -> None:
    """The base is steady: this machine can tell, so what may be slower is not passed by."""
    last = judged(inside_launch_launches(1.2, 0.001, head_tail=0.3, count=5))[-1]
    assert last.is_resolved
    assert last.decision == "undecided"


def test_a_slow_inference_in_every_block_shows_in_the_mean() -> None:
    slow = [replace(x, mean_effect=0.5 + 0.01 * n) for n, x in six_launches()]
    mean, *_ = judged(slow)
    assert (mean.what, mean.decision) == ("mean", "fail")
    some = [replace(x, mean_effect=0.08 + 0.03 * (n % 2)) for n, x in six_launches()]
    assert judged(some)[0].decision == "undecided"
    noisy = [replace(x, mean_effect=0.15 * (-1) ** n) for n, x in six_launches()]
    assert (judged(noisy)[0].decision, judged(noisy)[0].is_resolved) == ("pass", False)


@given(st.floats(-0.2, 0.2), st.floats(0.001, 0.05))
def test_what_is_slower_never_makes_a_fail_of_the_mean_a_pass(center: float, spread: float) -> None:
    def decided(shift: float) -> str:
        moved = [
            replace(x, mean_effect=center + shift + spread * (-1) ** n) for n, x in six_launches()
        ]
        return judged(moved)[0].decision

    order = ["pass", "undecided", "fail"]
    assert order.index(decided(0.0)) <= order.index(decided(0.1))


def test_launches_that_kept_no_times_have_no_tests() -> None:
    assert judged(list(make_launches([0.0] * 4))) == ()
    assert judged(inside_launch_launches(1.0, 0.001, count=1)) == ()


def test_a_mean_that_is_no_number_is_no_pass() -> None:
    spoilt = [replace(x, mean_effect=math.nan) for _, x in six_launches()]
    assert judged(spoilt)[0].decision == "undecided"


MILLISECONDS = st.floats(0.01, 1000)
PAIRS = st.lists(st.tuples(MILLISECONDS, MILLISECONDS), min_size=2, max_size=24)


def test_one_wild_block_hardly_moves_the_effect() -> None:
    calm = [0.01] * 11
    assert hodges_lehmann([*calm, 5.0]) == pytest.approx(0.01)


@given(PAIRS)
def test_exchanging_base_and_head_changes_the_sign_only(pairs: list[tuple[float, float]]) -> None:
    base, head = zip(*pairs, strict=True)
    assert launch_effect(base, head) == pytest.approx(-launch_effect(head, base), abs=1e-9)


@given(PAIRS, st.floats(0.001, 1000))
def test_the_unit_of_time_does_not_matter(pairs: list[tuple[float, float]], scale: float) -> None:
    base, head = zip(*pairs, strict=True)
    scaled = launch_effect([b * scale for b in base], [h * scale for h in head])
    assert scaled == pytest.approx(launch_effect(base, head), abs=1e-9)


@given(PAIRS, st.floats(0.1, 10))
def test_a_head_slower_by_a_factor_adds_its_logarithm(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    base, head = zip(*pairs, strict=True)
    slower = launch_effect(base, [h * factor for h in head])
    assert slower == pytest.approx(launch_effect(base, head) + math.log(factor), abs=1e-9)


def test_a_single_pair_has_no_spread() -> None:
    assert within_spread([1.0], [2.0]) == 0.0


def first_block(slow: float, seed: int = 7) -> Inside:
    """The test over eight launches on a busy machine, whose blocks scatter by 10%."""
    rng = np.random.default_rng(seed)
    times = np.exp(rng.normal(0.0, 0.1, (8, 12, 2, 1)) + rng.normal(0.0, 0.02, (8, 12, 2, 20)))
    times[:, 0, 1] *= slow
    tests = judged([launch_of(each) for each in times])
    return next(each for each in tests if each.what == "first-block")


def test_a_head_that_is_slow_in_its_first_block_alone_fails() -> None:
    found = first_block(3.0)
    assert found.decision == "fail"
    assert found.change_percent.center == pytest.approx(200, abs=30)


def test_a_first_block_that_may_be_slower_holds_up_a_pass_and_one_alike_does_not() -> None:
    assert first_block(1.3).decision == "undecided"
    assert {first_block(1.0, seed).decision for seed in range(40)} == {"pass"}


def test_launches_that_did_not_keep_their_first_blocks_are_judged_without() -> None:
    assert "first-block" not in {each.what for each in judged(inside_launch_launches(1.0, 0.001))}
