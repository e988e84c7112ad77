"""What no hardware can do."""

from __future__ import annotations

import math

import pytest

from tests.support.tuning_tasks import make_task
from tunegate.plan.resolve import PEAK, fastest_nanoseconds
from tunegate.tune.expected_time import RATES


def test_more_operations_need_more_time_and_unknown_ones_none() -> None:
    assert fastest_nanoseconds(make_task(flops=1e12), "llvm") == 500_000
    assert fastest_nanoseconds(make_task(flops=1e12), "cuda") == 25_000
    assert fastest_nanoseconds(make_task(flops=0.0), "llvm") == 0


@pytest.mark.parametrize("kind", ["llvm", "cuda"])
def test_the_bound_is_far_above_what_is_seen(kind: str) -> None:
    seen = max(rates.tuned for (target, _), rates in RATES.items() if target == kind)
    assert math.log10(PEAK[kind] / seen) > 3  # type: ignore[index]
