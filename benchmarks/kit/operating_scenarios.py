"""Scenarios of a head: no change in many guises, and changes that are there only sometimes."""

from __future__ import annotations

import math

import numpy as np
from tests.support.simulated.simulated_launches import Factors, Noise, Rng, Scenario, Times

_NAMES = {3: "third", 5: "fifth", 10: "tenth"}


def scenarios() -> tuple[Scenario, ...]:
    """The scenarios at a margin of 3%, and of 10% for the mean and the tail of inferences."""
    return (*_unchanged(), *_constant(), *_mixtures(), *_inside(), *_stalls(), *_others())


def _unchanged() -> tuple[Scenario, ...]:
    def tails(number: int, rng: Rng) -> tuple[float, float]:
        base, head = 0.01 * np.clip(rng.standard_cauchy(2), -40, 40)
        return math.exp(base), math.exp(head)

    def modes(number: int, rng: Rng) -> tuple[float, float]:
        base, head = np.where(rng.random(2) < 0.3, 1.08, 1.0)
        return float(base), float(head)

    def rare_modes(number: int, rng: Rng) -> tuple[float, float]:
        base, head = np.where(rng.random(2) < 0.1, 1.5, 1.0)
        return float(base), float(head)

    def turns(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1.04 if number % 2 else 1 / 1.04

    return (
        _same("no change"),
        _same("heavy tails of launches, both sides alike", tails),
        _same("30% of starts +8%, both sides alike", modes),
        _same("10% of starts +50%, both sides alike", rare_modes),
        _same("launches in turn +4% and -4%", turns),
    )


def _constant() -> tuple[Scenario, ...]:
    def always(percent: float) -> Scenario:
        return Scenario(
            name=f"always +{percent:g}%",
            mean_percent=percent,
            factors=lambda number, rng: (1.0, 1 + percent / 100),
            is_promised=percent >= 5,
            is_unchanged=percent <= 3,
        )

    return tuple(always(percent) for percent in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0))


def _mixtures() -> tuple[Scenario, ...]:
    pairs = (
        (0.05, 2.0), (0.1, 1.6), (0.1, 2.0), (0.12, 1.6), (0.15, 1.4),
        (0.2, 1.25), (0.2, 1.3), (0.2, 2.0), (0.25, 1.2), (0.3, 1.2),
        (0.4, 1.125), (0.5, 1.1), (0.6, 1.085), (0.7, 1.072), (0.3, 2.0),
    )  # fmt: skip
    return tuple(_mixture(share, slow) for share, slow in pairs)


def _mixture(share: float, slow: float, noisy: bool = False) -> Scenario:
    def factors(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, slow if rng.random() < share else 1.0

    mean = 100 * share * (slow - 1)
    return Scenario(
        name=f"{100 * share:.0f}% of starts +{100 * (slow - 1):.3g}%",
        mean_percent=mean,
        factors=factors,
        is_promised=share >= 0.2 and mean >= 5 - 1e-9,
    )


def _inside() -> tuple[Scenario, ...]:
    def every(nth: int, slow: float, promised: bool) -> Scenario:
        def change(head: Times) -> Times:
            changed = head.copy()
            changed.reshape(len(head), -1)[:, ::nth] *= slow
            return changed

        return Scenario(
            name=f"every {_NAMES.get(nth, f'{nth}th')} inference x {slow:g}",
            mean_percent=100 * (slow - 1) / nth,
            inside=change,
            is_promised=promised,
        )

    return (
        every(3, 3.0, True), every(3, 1.5, True), every(5, 2.0, True), every(10, 3.0, True),
        every(50, 10.0, False), every(100, 10.0, False),
    )  # fmt: skip


def _stalls() -> tuple[Scenario, ...]:
    """Inferences that are rarely very slow, at places that nobody can foresee."""

    def rarely(rate: int, slow: float, promised: bool) -> Scenario:
        rng = np.random.default_rng(rate)

        def change(head: Times) -> Times:
            return np.where(rng.random(head.shape) < 1 / rate, head * slow, head)

        return Scenario(
            name=f"one inference in {rate:,} x {slow:g}",
            mean_percent=100 * (slow - 1) / rate,
            inside=change,
            is_promised=promised,
        )

    def first_block(head: Times) -> Times:
        changed = head.copy()
        changed[:, 0] *= 3.0
        return changed

    return (
        rarely(200, 100.0, True), rarely(500, 100.0, True), rarely(500, 10.0, False),
        rarely(1000, 100.0, False), rarely(1000, 500.0, True), rarely(1000, 1000.0, True),
        rarely(2000, 100.0, False), rarely(2000, 1000.0, False),
        Scenario(name="the first block x 3", mean_percent=100 * 2 / 12, inside=first_block),
    )  # fmt: skip


def _others() -> tuple[Scenario, ...]:
    def trend(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1 + 0.005 * min(number, 40)

    def machine(number: int, rng: Rng) -> tuple[float, float]:
        speed = 1 + 0.01 * number
        return speed, speed

    def turns(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1.12 if number % 2 else 1.0

    def slower_and_modes(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1.08 * (2.0 if rng.random() < 0.2 else 1.0)

    def fourth(number: int, rng: Rng) -> tuple[float, float]:
        return 1.0, 1.3 if number % 4 == 3 else 1.0

    return (
        _same("the machine gets slower by 1% each launch", machine),
        Scenario(
            name="the head gets slower by 0.5 points each start", mean_percent=10.0, factors=trend
        ),
        Scenario(name="every second start +12%", mean_percent=6.0, factors=turns, is_promised=True),
        Scenario(name="+8%, 20% of starts x 2 beside", mean_percent=29.6, factors=slower_and_modes),
        Scenario(
            name="every fourth start +30%", mean_percent=7.5, factors=fourth, is_promised=True
        ),
    )


def _same(name: str, factors: Factors = lambda number, rng: (1.0, 1.0)) -> Scenario:
    return Scenario(name=name, mean_percent=0.0, factors=factors, is_unchanged=True)


def synthetic(name: str, spread: float, launches: int = 400, seed: int = 3) -> Noise:
    """Processes with a speed of their own, normally distributed;
    blocks and inferences vary, too."""
    rng = np.random.default_rng(seed)
    process = rng.normal(0.0, spread / math.sqrt(2), (launches, 1, 2, 1))
    block = rng.normal(0.0, spread, (launches, 12, 2, 1))
    inference = rng.normal(0.0, 0.02, (launches, 12, 2, 20))
    return Noise(name, np.exp(process + block + inference), 1.8)
