"""Iterations may run at once where each keeps to its own place of all that is written."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te

from tunegate_whole_model.nests.independence import is_independent


def _loop(made: Any, axis: int = 0) -> Any:
    """The nest of a computation over 8 rows and 8 columns, from this axis outwards."""
    schedule = tvm.s_tir.Schedule(te.create_prim_func(made))
    loops = schedule.get_loops(schedule.get_sblock("y"))
    schedule.reorder(loops[axis], *(each for n, each in enumerate(loops) if n != axis))
    return schedule.mod["main"].body.block.body


def _columns_summed() -> Any:
    x = te.placeholder((8, 8), name="x")
    k = te.reduce_axis((0, 8), "k")
    return [x, te.compute((8,), lambda i: te.sum(x[i, k], axis=k), "y")]


def _shifted() -> Any:
    x = te.placeholder((9, 8), name="x")
    return [x, te.compute((8, 8), lambda i, j: x[i + 1, j], "y")]


@pytest.mark.parametrize(
    ("made", "axis", "may"),
    [
        (_shifted, 0, True),
        (_shifted, 1, True),
        (_columns_summed, 0, True),
        (_columns_summed, 1, False),
    ],
    ids=["rows", "columns", "sums", "terms-of-a-sum"],
)
def test_only_a_loop_over_the_output_may_be_parallel(made: Any, axis: int, may: bool) -> None:
    assert is_independent(_loop(made(), axis)) is may


def test_a_neighbour_that_is_read_forbids_it() -> None:
    """The second block of an iteration reads what the first of the one before has written."""
    x = te.placeholder((9, 8), name="x")
    between = te.compute((9, 8), lambda i, j: x[i, j] * 2.0, "between")
    schedule = tvm.s_tir.Schedule(
        te.create_prim_func([x, te.compute((8, 8), lambda i, j: between[i + 1, j], "y")])
    )
    outer, _ = schedule.get_loops(schedule.get_sblock("y"))
    schedule.compute_at(schedule.get_sblock("between"), outer)
    assert not is_independent(schedule.mod["main"].body.block.body)


def test_what_is_no_loop_nest_is_not_judged() -> None:
    i = tvm.tirx.Var("i", "int64")
    y = tvm.tirx.decl_buffer([8], "float32", "y")
    store = tvm.tirx.BufferStore(y, tvm.tirx.const(0.0, "float32"), [i])
    zero, eight = (tvm.tirx.const(n, "int64") for n in (0, 8))
    assert not is_independent(tvm.tirx.For(i, zero, eight, tvm.tirx.ForKind.SERIAL, store))
