from __future__ import annotations

from typing import Any

import pytest
import tvm

from tests.compiler.schedules.test_product_tiles import (
    batched,
    convolution,
    module_of,
    product,
    turned,
)
from tunegate.compiler.schedules.product_tiles import TwoFactors, two_factors


def found_in(tensors: list[Any], *, constant: bool = True) -> TwoFactors | None:
    schedule = tvm.s_tir.Schedule(module_of(tensors, constant=constant))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    (block,) = (each for each in blocks if schedule.get(each).init is not None)
    return two_factors(schedule, block)


@pytest.mark.parametrize(
    ("tensors", "extents", "axes", "last_axis"),
    [
        (convolution(8, 16, 32), [1, 8, 8, 32], [0, 1, 2], 3),
        (product(12, 40, 96), [12, 96], [0], 1),
        (turned(12, 40, 96), [12, 96], [0], 0),
        (batched(3, 10, 24, 32), [3, 10, 32], [1], 2),
    ],
)
def test_it_knows_where_the_weights_are_the_same(
    tensors: list[Any], extents: list[int], axes: list[int], last_axis: int
) -> None:
    found = found_in(tensors)
    assert found is not None
    assert (found.extents, found.axes, found.last_axis) == (extents, axes, last_axis)
    assert (found.second, found.constant) == (1, True)


def test_weights_that_are_no_constant_must_lie_side_by_side() -> None:
    assert found_in(turned(12, 40, 96), constant=False) is None
    assert found_in(product(12, 40, 96), constant=False) is not None


def test_short_sums_are_none() -> None:
    assert found_in(product(12, 3, 96)) is None
