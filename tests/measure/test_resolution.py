from __future__ import annotations

import random

import pytest

from tests.support.replayed_gates import gates
from tunegate.measure.selftest import smallest_margin_percent


def launches(spread: float, count: int = 4000, seed: int = 3) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, spread) for _ in range(count)]


def test_a_machine_twice_as_noisy_resolves_half_as_much() -> None:
    quiet, noisy = launches(0.002), launches(0.004)
    one = smallest_margin_percent(quiet, launch_seconds=2.0, budget_seconds=240.0)
    two = smallest_margin_percent(noisy, launch_seconds=2.0, budget_seconds=240.0)
    assert two == pytest.approx(2 * one, rel=0.1)


def test_more_budget_resolves_more() -> None:
    effects = launches(0.01)
    long = smallest_margin_percent(effects, launch_seconds=2.0, budget_seconds=240.0)
    short = smallest_margin_percent(effects, launch_seconds=2.0, budget_seconds=20.0)
    assert long < short


@pytest.mark.parametrize("spread", [0.004, 0.01, 0.03])
def test_at_this_margin_nearly_every_unchanged_model_passes(spread: float) -> None:
    effects = launches(spread)
    margin = smallest_margin_percent(effects, launch_seconds=2.0, budget_seconds=240.0)
    found = gates(effects, [0.001] * len(effects), 0.0, margin)
    assert sum(each.outcome == "pass" for each in found) >= 0.9 * len(found)
