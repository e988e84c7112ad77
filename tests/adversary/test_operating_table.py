"""A few cells of benchmarks/gate/operating_table.py, on made-up noise with known seeds."""

import math

import numpy as np
import pytest

from tests.support.simulated.simulated_launches import Noise, Rng, Scenario, Times, gates
from tunegate.config import GateConfig
from tunegate.review.gate_rules import gate_at

GATES = 60
NEW, MEDIANS_ONLY = GateConfig(), GateConfig(rare_launches=0.0, tail_margin_percent=1000.0)


@pytest.fixture(scope="module")
def noise() -> Noise:
    rng = np.random.default_rng(3)
    process = rng.normal(0.0, 0.005, (60, 1, 2, 1))
    block = rng.normal(0.0, 0.01, (60, 12, 2, 1))
    inference = rng.normal(0.0, 0.02, (60, 12, 2, 20))
    return Noise("made up", np.exp(process + block + inference), 1.8)


def shares(
    noise: Noise, scenario: Scenario, config: GateConfig = NEW, waived: GateConfig | None = None
) -> dict[str, float]:
    found = gates(noise, scenario, config, GATES, seed=7, waived=waived)
    outcomes = [gate.outcome for gate in found]
    return {what: outcomes.count(what) / GATES for what in ("fail", "pass", "undecided", "waived")}


def mixture(share: float, slow: float, usual: float = 1.0) -> Scenario:
    def factors(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, slow if rng.random() < share else usual

    return Scenario(name="mixture", mean_percent=100 * share * (slow - 1), factors=factors)


def every(nth: int, slow: float) -> Scenario:
    def change(head: Times) -> Times:
        changed = head.copy()
        changed.reshape(len(head), -1)[:, ::nth] *= slow
        return changed

    return Scenario(name="inside", mean_percent=100 * (slow - 1) / nth, inside=change)


def test_without_a_change_it_passes_and_costs_a_dozen_probes(noise: Noise) -> None:
    same = Scenario(name="no change", mean_percent=0.0)
    found = gates(noise, same, NEW, GATES, seed=7)
    assert [gate.outcome for gate in found].count("pass") >= 0.98 * GATES
    before = gates(noise, same, MEDIANS_ONLY, GATES, seed=7)
    added = np.median([gate.seconds for gate in found]) - np.median([g.seconds for g in before])
    assert 0 < added <= 10


@pytest.mark.parametrize(("share", "slow"), [(0.2, 1.25), (0.2, 1.3), (0.3, 1.2), (0.5, 1.1)])
def test_a_promised_mode_hardly_ever_passes(noise: Noise, share: float, slow: float) -> None:
    assert shares(noise, mixture(share, slow))["pass"] <= 0.05


def test_medians_alone_passed_it(noise: Noise) -> None:
    assert shares(noise, mixture(0.2, 1.3), MEDIANS_ONLY)["pass"] > 0.2


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.95, 1.0), (0.2, 0.0, 0.05)])
def test_a_waiver_of_a_slower_head_hardly_ever_covers_slow_starts(
    noise: Noise, share: float, least: float, most: float
) -> None:
    found = shares(noise, mixture(share, 2.16, 1.08), NEW, gate_at(NEW, 12.0))
    assert least <= found["waived"] + found["pass"] <= most


@pytest.mark.parametrize(("nth", "slow"), [(3, 3.0), (5, 2.0), (10, 3.0)])
def test_inferences_that_are_slow_now_and_then_fail(noise: Noise, nth: int, slow: float) -> None:
    assert shares(noise, every(nth, slow))["fail"] >= 0.95


def test_what_comes_and_goes_with_every_launch_is_decided(noise: Noise) -> None:
    def turns(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1.12 if number % 2 else 1.0

    assert shares(noise, Scenario(name="turns", mean_percent=6.0, factors=turns))["fail"] >= 0.9


def test_heavy_tails_of_both_sides_are_no_fail(noise: Noise) -> None:
    def tails(number: int, rng: Rng) -> tuple[float, float]:
        base, head = 0.01 * np.clip(rng.standard_cauchy(2), -40, 40)
        return math.exp(base), math.exp(head)

    assert shares(noise, Scenario(name="tails", mean_percent=0.0, factors=tails))["fail"] == 0.0
