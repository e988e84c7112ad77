from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te

from tunegate.compiler.schedules.default_schedule import with_split_choices

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell"})
ROWS = 3


def concatenation(*widths: int, axis: int = 1) -> Any:
    shapes = [(ROWS, width) if axis else (width, ROWS) for width in widths]
    inputs = [te.placeholder(s, "float32", f"x{i}") for i, s in enumerate(shapes)]
    whole = (ROWS, sum(widths)) if axis else (sum(widths), ROWS)
    starts = [0, *itertools.accumulate(widths[:-1])]

    def chosen(*place: Any) -> Any:
        before, at, behind = place[:axis], place[axis], place[axis + 1 :]
        first, *others = (
            each(*before, at - start, *behind) for each, start in zip(inputs, starts, strict=True)
        )
        value = first
        for other, start in zip(others, starts[1:], strict=True):
            value = te.if_then_else(at >= start, other, value)
        return value

    return module(inputs, te.compute(whole, chosen, "joined"))


def module(inputs: list[Any], output: Any) -> Any:
    main = te.create_prim_func([*inputs, output]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main})


def loops(of: Any) -> list[int]:
    schedule = tvm.s_tir.Schedule(of)
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]


def test_a_concatenation_is_split_where_its_inputs_meet() -> None:
    assert loops(with_split_choices(concatenation(64, 192))) == [ROWS, 4, 64]
    assert loops(with_split_choices(concatenation(24, 40, 16))) == [ROWS, 10, 8]


def test_a_block_that_follows_another_is_split_too() -> None:
    x, y = (te.placeholder((ROWS, 32), "float32", name) for name in "xy")
    joined = te.compute(
        (ROWS, 64), lambda i, j: te.if_then_else(j < 32, x[i, j], y[i, j - 32]), "joined"
    )
    turned = te.compute(
        (ROWS, 64), lambda i, j: te.if_then_else(j < 16, joined[i, j], -joined[i, j]), "turned"
    )
    schedule = tvm.s_tir.Schedule(with_split_choices(module([x, y], turned)))
    found = [schedule.get_loops(schedule.get_sblock(name)) for name in ("joined", "turned")]
    extents = [[int(schedule.get(loop).extent) for loop in loops] for loops in found]
    assert extents == [[ROWS, 2, 32], [ROWS, 4, 16]]


def test_along_another_axis_nothing_is_split() -> None:
    plain = concatenation(64, 192, axis=0)
    assert with_split_choices(plain) is plain


@pytest.mark.parametrize("widths", [(3, 64), (2, 2), (5,)])
def test_a_few_numbers_in_a_row_are_not_worth_a_loop(widths: tuple[int, ...]) -> None:
    plain = concatenation(*widths)
    assert with_split_choices(plain) is plain


def test_a_single_number_is_left_alone() -> None:
    x = te.placeholder((), "float32", "x")
    plain = module([x], te.compute((), lambda: te.if_then_else(x() > 0, x(), -x()), "y"))
    assert with_split_choices(plain) is plain


def test_what_has_a_schedule_is_left_alone() -> None:
    plain = concatenation(64, 192)
    plain["main"] = plain["main"].with_attr("tirx.is_scheduled", True)
    assert with_split_choices(plain) is plain


def test_a_module_that_is_given_stays_as_it_is() -> None:
    plain = concatenation(64, 192)
    before = str(plain)
    with_split_choices(plain)
    assert str(plain) == before


def test_a_sum_over_a_padded_row_is_left_alone() -> None:
    x = te.placeholder((ROWS, 64), "float32", "x")
    k = te.reduce_axis((0, 128), "k")
    inside = te.compute((ROWS,), lambda i: te.sum(te.if_then_else(k < 64, x[i, k], 0.0), axis=k))
    plain = module([x], inside)
    assert with_split_choices(plain) is plain


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from([1, 4, 12, 16, 24]), min_size=1, max_size=4))
def test_every_number_stays_in_its_place(widths: list[int]) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(ROWS, width)).astype("float32") for width in widths]
    kernel = tvm.driver.build(with_split_choices(concatenation(*widths)), target=TARGET)
    out = tvm.runtime.empty((ROWS, sum(widths)), "float32")
    kernel["main"](*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_array_equal(out.numpy(), np.concatenate(inputs, axis=1))
