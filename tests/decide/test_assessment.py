from __future__ import annotations

import math
import random

import msgspec
import pytest

from tests.support.measured_cells import make_launches
from tunegate.artifacts.measurements import Launch
from tunegate.decide.assessment import Assessment, assess
from tunegate.decide.inside_launch import histogram
from tunegate.decide.sequential import PLANNED, StoppingRule

RULE = StoppingRule(margin_percent=3.0, analyses=PLANNED, cells=1, rare=0.2)


def quiet(count: int, mean_effect: float = 0.0) -> list[Launch]:
    rng = random.Random(4)
    times = histogram([5.0] * 100)
    return [
        msgspec.structs.replace(
            launch,
            noise=0.001,
            mean_effect=mean_effect + rng.gauss(0.0, 0.003),
            base_times=times,
            head_times=times,
        )
        for launch in make_launches([rng.gauss(0.0, 0.003) for _ in range(count)])
    ]


def slow(effect: float, noise: float = 0.001) -> Launch:
    return msgspec.structs.replace(make_launches([effect])[0], noise=noise, mean_effect=0.0)


def assessed(
    launches: list[Launch], probes: list[Launch], starts: tuple[int, ...] = (16,)
) -> Assessment:
    found = assess(launches, probes, starts, RULE)
    assert found is not None
    return found


def test_a_pass_needs_the_median_the_mean_the_tail_and_clean_starts() -> None:
    assert assessed(quiet(4), quiet(12)).decision == "pass"
    assert assessed(quiet(4), quiet(11)).decision == "undecided"
    assert assessed(quiet(6, mean_effect=0.5), quiet(12)).decision == "fail"
    assert assessed(quiet(4), [*quiet(11), slow(0.3)]).decision == "undecided"


def test_a_start_whose_mean_is_slow_counts_though_its_median_is_not() -> None:
    odd = msgspec.structs.replace(quiet(1)[0], mean_effect=0.6)
    found = assessed(quiet(4), [*quiet(11), odd])
    assert (found.decision, found.excluded.slow) == ("undecided", 1)
    assert found.excluded.mean_percent == pytest.approx(15.0)


def test_a_slow_launch_that_is_noisy_too_is_evidence_and_no_noise() -> None:
    """Its noise leaves it out of the bounds: it must not be forgotten with it."""
    noisy = slow(0.4, noise=0.2)
    launches = [*quiet(4), noisy, noisy, *quiet(4)]
    found = assessed(launches, quiet(12))
    assert noisy not in found.launches
    assert found.median == "pass"
    assert (found.decision, found.excluded.slow) == ("undecided", 2)


def test_a_noisy_launch_in_which_the_base_is_slow_is_none_of_the_heads() -> None:
    launches = [*quiet(4), slow(-0.4, noise=0.2), *quiet(4)]
    assert assessed(launches, quiet(12)).decision == "pass"


@pytest.mark.parametrize("effect", [math.nan, math.inf])
def test_a_start_that_gave_no_number_excludes_nothing(effect: float) -> None:
    assert assessed(quiet(4), [*quiet(11), slow(effect)]).decision == "undecided"


def test_slow_starts_of_one_case_of_inputs_are_told_with_it() -> None:
    on_two, on_one = slow(0.3), quiet(12)
    cases = [msgspec.structs.replace(each, case=1) for each in on_one]
    probes = [*cases[1:], msgspec.structs.replace(on_two, case=2)]
    assert assessed(quiet(4), probes).excluded.slow_cases == (2,)
    assert assessed(quiet(4), [*cases[1:], on_two]).excluded.slow_cases == ()


def test_it_tells_what_was_excluded_and_by_how_many_starts() -> None:
    found = assessed(quiet(4), quiet(12)).excluded
    assert (found.asked_percent, found.starts, found.slow) == (20.0, 16, 0)
    assert found.share_percent is not None
    assert 18.0 < found.share_percent <= 20.0
    assert found.cut_off_percent == pytest.approx(11.8, abs=0.5)
    few = assess(quiet(4), [], (), msgspec.structs.replace(RULE, rare=0.0))
    assert few is not None
    assert few.decision == "pass"
    assert few.excluded.share_percent is not None
    assert few.excluded.share_percent > 50
