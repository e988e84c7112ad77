from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.measured_cells import make_launches
from tests.support.simulated.simulated_launches import launch_of
from tunegate.artifacts.measurements import Inside, Launch
from tunegate.decide.decision import hodges_lehmann, launch_effect, within_spread
from tunegate.decide.histogram import histogram
from tunegate.decide.inside_launch import inside

MARGIN = math.log(1.1)


def judged(found: list[Launch]) -> tuple[Inside, ...]:
    return inside(found, margin=MARGIN, analyses=1, cells=1)


def six_launches() -> Iterator[tuple[int, Launch]]:
    return enumerate(launches(1.0, 0.001, count=6))


def launches(
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
        msgspec.structs.replace(
            launch,
            base_times=histogram(times(1.0)),
            head_times=histogram(times(slower_tail, own_tail if head_tail is None else head_tail)),
        )
        for launch in make_launches([0.0] * count)
    ]


def test_a_slower_tail_shows_in_the_tail_only() -> None:
    ninety, last = judged(launches(1.5, 0.001))
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
        msgspec.structs.replace(launch, head_times=few) for launch in launches(1.0, 0.001, count=6)
    ]
    ninety, last = judged(found)
    assert (ninety.is_resolved, last.is_resolved) == (True, False)


def test_where_the_base_scatters_too_much_a_tail_is_not_resolvable_and_holds_nothing_up() -> None:
    scattered = launches(1.2, 0.001, own_tail=0.4)
    last = judged(scattered)[-1]
    assert (last.is_resolved, last.decision) == (False, "pass")
    assert all(each.is_resolved for each in judged(launches(1.0, 0.001)))


def test_a_head_that_scatters_by_itself_does_not_buy_a_way_out() -> None:
    """The base is steady: this machine can tell, so what may be slower is not passed by."""
    last = judged(launches(1.2, 0.001, head_tail=0.3, count=5))[-1]
    assert last.is_resolved
    assert last.decision == "undecided"


def test_a_slow_inference_in_every_block_shows_in_the_mean() -> None:
    slow = [msgspec.structs.replace(x, mean_effect=0.5 + 0.01 * n) for n, x in six_launches()]
    mean, *_ = judged(slow)
    assert (mean.what, mean.decision) == ("mean", "fail")
    some = [
        msgspec.structs.replace(x, mean_effect=0.08 + 0.03 * (n % 2)) for n, x in six_launches()
    ]
    assert judged(some)[0].decision == "undecided"
    noisy = [msgspec.structs.replace(x, mean_effect=0.15 * (-1) ** n) for n, x in six_launches()]
    assert (judged(noisy)[0].decision, judged(noisy)[0].is_resolved) == ("pass", False)


@given(st.floats(-0.2, 0.2), st.floats(0.001, 0.05))
def test_what_is_slower_never_makes_a_fail_of_the_mean_a_pass(center: float, spread: float) -> None:
    def decided(shift: float) -> str:
        moved = [
            msgspec.structs.replace(x, mean_effect=center + shift + spread * (-1) ** n)
            for n, x in six_launches()
        ]
        return judged(moved)[0].decision

    order = ["pass", "undecided", "fail"]
    assert order.index(decided(0.0)) <= order.index(decided(0.1))


def test_launches_that_kept_no_times_have_no_tests() -> None:
    assert judged(list(make_launches([0.0] * 4))) == ()
    assert judged(launches(1.0, 0.001, count=1)) == ()


def test_a_mean_that_is_no_number_is_no_pass() -> None:
    spoilt = [msgspec.structs.replace(x, mean_effect=math.nan) for _, x in six_launches()]
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
    assert "first-block" not in {each.what for each in judged(launches(1.0, 0.001))}
