import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tunegate.decide import slow_modes

WORST = math.log(1.05)
RARE = 0.2


def mode(quiet: int, *slow: float, spread: float = 0.003) -> slow_modes.HeadStarts:
    """A number of starts without a change, and slow ones that only probes saw."""
    rng = random.Random(3)
    usual = tuple(rng.gauss(0.0, spread) for _ in range(quiet))
    return slow_modes.HeadStarts(
        effects=(*usual, *slow), paired=usual[:4], worst=WORST, probed=(*usual[4:], *slow)
    )


@pytest.mark.parametrize(("share", "starts"), [(0.2, 16), (0.1, 34), (0.05, 69), (0.3, 10)])
def test_the_price_of_a_share_is_known_before(share: float, starts: int) -> None:
    assert slow_modes.starts_needed(share) == starts
    assert (1 - share) ** starts <= slow_modes.FIRST_ERROR < (1 - share) ** (starts - 1)


def test_sixteen_clean_starts_exclude_a_fifth_and_fifteen_do_not() -> None:
    assert slow_modes.is_clean(RARE, mode(16))
    assert not slow_modes.is_clean(RARE, mode(15))


def test_one_slow_start_wants_more_of_them_and_a_second_answer() -> None:
    found = mode(15, 0.25)
    assert not slow_modes.is_clean(RARE, found)
    wanted = slow_modes.second_look(RARE, found, 60)
    assert wanted is not None
    assert slow_modes.is_clean(RARE, replace(mode(wanted - 1, 0.25), second=wanted))
    assert not slow_modes.is_clean(RARE, replace(mode(wanted - 2, 0.25), second=wanted))
    assert slow_modes.second_look(RARE, found, wanted - 1) is None


def test_who_goes_on_after_the_second_answer_does_not_ask_again() -> None:
    assert not slow_modes.is_clean(RARE, replace(mode(60, 0.25), second=30))


def test_a_slow_start_in_the_probes_is_not_covered_by_the_bounds_over_launches() -> None:
    found = replace(mode(30, 0.25, 0.25, 0.25), bounded=19)
    assert not slow_modes.is_clean(RARE, found)
    assert slow_modes.is_clean(RARE, replace(found, probed=()))


def test_after_the_second_answer_many_launches_cover_it_but_not_what_was_left_out() -> None:
    found = replace(mode(40, 0.25, 0.25, 0.25), bounded=28, second=30)
    assert slow_modes.is_clean(RARE, found)
    assert not slow_modes.is_clean(RARE, replace(found, left_out=(0.25,)))
    assert not slow_modes.is_clean(RARE, replace(found, bounded=19))


def test_a_mode_that_the_noise_hides_is_not_excluded() -> None:
    assert slow_modes.is_excluded(0.3, mode(20, spread=0.003))
    assert not slow_modes.is_excluded(0.5, mode(10, spread=0.3))
    assert slow_modes.excluded_share(mode(8, spread=0.3)) is None


def test_a_machine_that_slows_either_side_does_not_blame_the_head() -> None:
    slow = (0.25,) * 6
    blamed = mode(40, *slow)
    paired = (*blamed.effects, *(-effect for effect in slow))
    alike = replace(blamed, effects=paired, paired=paired, second=60)
    assert not slow_modes.is_clean(RARE, replace(blamed, second=60))
    assert slow_modes.is_clean(RARE, alike)


def test_the_cut_off_is_half_way_to_the_mode_that_matters() -> None:
    assert math.exp(2 * slow_modes.cut_off(0.2, 0.0, WORST)) == pytest.approx(1.25)
    assert slow_modes.cut_off(1.0, 0.01, WORST) == pytest.approx((0.01 + WORST) / 2)


@given(st.floats(0.02, 1.0), st.floats(-0.3, 0.04))
def test_a_rarer_mode_must_be_slower_to_matter(share: float, usual: float) -> None:
    assert slow_modes.cut_off(share, usual, WORST) >= slow_modes.cut_off(1.0, usual, WORST) - 1e-12
    assert slow_modes.cut_off(share, usual, WORST) >= usual


@given(st.integers(1, 60), st.integers(0, 10))
def test_another_slow_start_never_excludes_more(quiet: int, slow: int) -> None:
    fewer, more = mode(quiet, *[0.5] * slow), mode(quiet, *[0.5] * (slow + 1))
    assert (slow_modes.excluded_share(fewer) or 1.0) <= (slow_modes.excluded_share(more) or 1.0)
    assert slow_modes.slow_starts(RARE, more) == (slow + 1 if more.usual < WORST else 0)


@pytest.mark.parametrize("share", [0.2, 0.3, 0.45, slow_modes.MAX_SHARE])
def test_both_answers_together_hardly_ever_miss_a_mode(share: float) -> None:
    """The promise, for modes that are just as slow as matters."""
    rng = random.Random(5)
    slow = math.log((math.exp(WORST) - (1 - share)) / share)

    def drawn(count: int) -> list[float]:
        return [rng.gauss(slow if rng.random() < share else 0.0, 0.004) for _ in range(count)]

    missed = 0
    runs = 400
    for _ in range(runs):
        starts = drawn(slow_modes.starts_needed(RARE))
        found = slow_modes.HeadStarts(effects=tuple(starts), paired=tuple(starts[:4]), worst=WORST)
        if slow_modes.is_clean(RARE, found):
            missed += 1
            continue
        wanted = slow_modes.second_look(RARE, found, 60)
        if wanted is not None:
            more = (*starts, *drawn(wanted - len(starts)))
            again = slow_modes.HeadStarts(effects=more, paired=more, worst=WORST, second=wanted)
            missed += slow_modes.is_clean(RARE, again)
    assert missed / runs <= slow_modes.FIRST_ERROR + slow_modes.SECOND_ERROR + 0.012


def test_a_slow_start_that_noise_may_hide_counts_for_less() -> None:
    """No start is over the cut-off, but one in ten of a mode would be under it as well."""
    noisy = tuple(0.06 if n % 2 else -0.06 for n in range(16))
    assert not slow_modes.is_excluded(
        0.2, slow_modes.HeadStarts(effects=noisy, paired=noisy[:4], worst=WORST)
    )
    assert slow_modes.is_excluded(0.2, mode(16))
