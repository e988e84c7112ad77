"""A form of convolutions that a target asks for is what is searched, and what is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import IterVar

from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tests.support.models.workload_corpus import primitive, workloads
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import (
    DIRECT,
    GROUP_VECTORS,
    IM2COL,
    asked_algorithm,
    with_algorithm,
)
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
PLAIN = canonical_workload(primitive(workloads()["conv2d_nhwc_float32"]))
PRODUCT = canonical_workload(primitive(workloads()["matmul_float32"]))
GROUPED = Shape()


def asked(module: Any, algorithm: str) -> Any:
    return with_algorithm(module, algorithm)["main"]


def test_functions_that_have_the_form_beside_another_one_are_marked() -> None:
    grouped = workload(GROUPED).module
    assert asked_algorithm(asked(PLAIN.module, IM2COL)) == IM2COL
    assert asked_algorithm(asked(PLAIN.module, DIRECT)) == DIRECT
    assert asked_algorithm(asked(grouped, GROUP_VECTORS)) == GROUP_VECTORS
    assert asked_algorithm(asked(PLAIN.module, GROUP_VECTORS)) == ""
    assert asked_algorithm(asked(grouped, IM2COL)) == ""
    for algorithm in (DIRECT, IM2COL, GROUP_VECTORS):
        assert asked_algorithm(asked(PRODUCT.module, algorithm)) == ""


def test_where_the_search_chooses_nothing_is_touched() -> None:
    assert with_algorithm(PLAIN.module, "auto") is PLAIN.module


def test_each_form_has_records_and_templates_of_its_own() -> None:
    workloads_ = [
        PLAIN,
        *(canonical_workload(asked(PLAIN.module, each)) for each in (DIRECT, IM2COL)),
    ]
    assert len({each.digest for each in workloads_}) == 3
    names = [
        {each.variant.name for each in DesignSpace(found, TARGET).templates.values()}
        for found in workloads_
    ]
    assert names == [{DIRECT, IM2COL}, {DIRECT}, {IM2COL}]


@pytest.mark.parametrize("algorithm", [DIRECT, GROUP_VECTORS])
def test_a_grouped_convolution_without_a_record_is_in_its_form(algorithm: str) -> None:
    module = with_algorithm(workload(GROUPED, has_constants=False).module, algorithm)
    built = with_default_schedule(module, TARGET)
    is_in_vectors = IS_SCHEDULED in built["main"].attrs
    assert is_in_vectors == (algorithm == GROUP_VECTORS)
    given = arguments(GROUPED)
    wanted = convolved(GROUPED, *given)
    assert np.array_equal(output(built, given, wanted.shape), wanted)


def test_an_image_is_unfolded_without_a_record_and_the_sums_are_the_same() -> None:
    asked_for = with_algorithm(PLAIN.module, IM2COL)
    direct = with_default_schedule(with_algorithm(PLAIN.module, DIRECT), TARGET)
    product = with_default_schedule(asked_for, TARGET)
    assert len(sums(product)[0].iter_vars) == 3
    assert len(sums(direct)[0].iter_vars) == 7
    random = np.random.default_rng(3)
    *shapes, result = (
        tuple(int(n) for n in each.shape)
        for each in ms.arg_info.ArgInfo.from_prim_func(PLAIN.module["main"])
    )
    inputs = [random.integers(-4, 5, each).astype("float32") for each in shapes]
    assert np.array_equal(output(product, inputs, result), output(direct, inputs, result))


def output(module: Any, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    result = tvm.runtime.tensor(np.zeros(shape, "float32"))
    tvm.compile(module, TARGET)(*map(tvm.runtime.tensor, inputs), result)
    return np.asarray(result.numpy())


def sums(module: Any) -> list[Any]:
    """The blocks that add up, without where they begin with zero."""
    schedule = tvm.s_tir.Schedule(module)
    found = map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
    return [
        each
        for each in found
        if any(int(v.iter_type) == IterVar.CommReduce for v in each.iter_vars)
    ]
