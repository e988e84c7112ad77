from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te

from tunegate.compiler.search.workload import Workload, canonical_workload


def product(m: int, n: int, k: int, dtype: str = "float32", name: str = "C") -> Any:
    a = te.placeholder((m, k), dtype, name="A" + name)
    b = te.placeholder((k, n), dtype, name="B" + name)
    axis = te.reduce_axis((0, k), "k" + name)
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name=name)
    return te.create_prim_func([a, b, c])


def scaled(factor: float) -> Any:
    a = te.placeholder((8, 8), "float32", name="A")
    return te.create_prim_func([a, te.compute((8, 8), lambda i, j: a[i, j] * factor, name="B")])


def digest(function: Any) -> str:
    return canonical_workload(function).digest


def test_names_do_not_count() -> None:
    assert digest(product(32, 32, 32)) == digest(product(32, 32, 32, name="Other"))


@pytest.mark.parametrize(
    "other", [product(32, 32, 64), product(32, 64, 32), product(32, 32, 32, "float16")]
)
def test_an_extent_or_a_dtype_makes_another_workload(other: Any) -> None:
    assert digest(product(32, 32, 32)) != digest(other)


def test_shapes_of_one_kind_share_a_skeleton_and_differ_in_extents() -> None:
    small = canonical_workload(product(64, 64, 64)).shape
    large = canonical_workload(product(512, 128, 2048)).shape
    assert small.skeleton == large.skeleton
    assert len(small.extents) == len(large.extents)
    assert set(large.extents) == {512, 128, 2048}


def test_a_dtype_makes_another_skeleton() -> None:
    half = canonical_workload(product(64, 64, 64, "float16")).shape
    assert half.skeleton != canonical_workload(product(64, 64, 64)).shape.skeleton


def test_a_scalar_weight_folded_into_the_code_does_not_make_another_workload() -> None:
    assert digest(scaled(0.25)) == digest(scaled(0.75))


def test_the_canonical_module_computes_the_same() -> None:
    workload: Workload = canonical_workload(product(32, 32, 32, name="Odd name"))
    schedule = tvm.s_tir.Schedule(workload.module)
    assert schedule.get_sblock("b1") is not None
