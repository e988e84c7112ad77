from __future__ import annotations

import random

import msgspec
import pytest

from tests.support.measured_cells import make_launches
from tunegate.artifacts.measurements import Launch
from tunegate.gate.histogram import histogram
from tunegate.gate.tails import PERCENTILES, tails

MARGIN = 0.03


def launches(slower_tail: float, spread: float, count: int = 9) -> list[Launch]:
    """One in fifty inferences of the head takes that much longer; `spread` is of processes."""
    chance = random.Random(4)

    def times(tail: float) -> list[float]:
        speed = chance.gauss(1.0, spread)
        usual = [speed * chance.gauss(5.0, 0.02) for _ in range(490)]
        return [*usual, *(speed * chance.gauss(5.0 * tail, 0.02) for _ in range(10))]

    return [
        msgspec.structs.replace(
            launch, base_times=histogram(times(1.0)), head_times=histogram(times(slower_tail))
        )
        for launch in make_launches([0.0] * count)
    ]


def test_a_slower_tail_shows_in_the_tail_only() -> None:
    half, ninety, last = tails(launches(1.5, 0.001), MARGIN)
    assert (half.percentile, ninety.percentile, last.percentile) == PERCENTILES
    assert abs(half.change_percent.center) < 1.0
    assert abs(ninety.change_percent.center) < 1.0
    assert last.change_percent.low > 30
    assert last.head_ms == pytest.approx(7.5, rel=0.03)


def test_where_processes_differ_too_much_a_tail_is_not_resolvable() -> None:
    assert not any(tail.is_resolved for tail in tails(launches(1.0, 0.2), MARGIN))
    assert all(tail.is_resolved for tail in tails(launches(1.0, 0.001), MARGIN))


def test_launches_that_kept_no_times_have_no_tails() -> None:
    assert tails(make_launches([0.0] * 4), MARGIN) == ()
    assert tails(launches(1.0, 0.001, count=1), MARGIN) == ()
