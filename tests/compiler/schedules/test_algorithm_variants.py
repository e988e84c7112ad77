"""Which forms a function has, and which of them are searched first."""

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import meta_schedule as ms
from tvm.tirx import IterVar

from tests.compiler.schedules.test_unfolded_image import (
    batched,
    convolution,
    product,
    product_tiles_module_of,
    turned,
)
from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tests.support.models.workload_corpus import primitive, workloads
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import (
    ASKED_FOR,
    DIRECT,
    GROUP_VECTORS,
    IM2COL,
    asked_algorithm,
    variants_of,
    with_algorithm,
)
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.schedules.product_tiles import TwoFactors, two_factors
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

load_intrinsics("llvm")


def module_of(name: str) -> Any:
    return canonical_workload(primitive(workloads()[name])).module


def test_a_gpu_has_the_direct_form_only() -> None:
    assert len(variants_of(module_of("conv2d_3x3_float32"), "cuda")) == 1
    assert len(variants_of(workload(Shape()).module, "cuda")) == 1


def test_a_convolution_of_small_groups_is_seldom_fastest_as_it_is_written() -> None:
    direct, vectors = variants_of(workload(Shape()).module, "llvm")
    assert (direct.name, direct.is_seldom_best, direct.lanes) == (DIRECT, True, 1)
    assert (vectors.name, vectors.is_seldom_best, vectors.lanes) == (GROUP_VECTORS, False, 16)


def test_a_depthwise_convolution_may_be_fastest_in_either_form() -> None:
    depthwise = workload(Shape(groups=32, channels_in=1, channels_out=1)).module
    assert not any(each.is_seldom_best for each in variants_of(depthwise, "llvm"))


def test_a_plain_convolution_is_seldom_fastest_as_a_product() -> None:
    direct, product = variants_of(module_of("conv2d_nhwc_float32"), "llvm")
    assert (direct.is_seldom_best, product.name, product.is_seldom_best) == (False, IM2COL, True)


def test_what_has_no_window_and_no_groups_has_one_form() -> None:
    for name in ("matmul_float32", "softmax_float32", "conv2d_depthwise_float32"):
        assert [each.name for each in variants_of(module_of(name), "llvm")] == [DIRECT]


def test_a_form_that_is_asked_for_is_the_only_one_and_is_sampled_as_often_as_any() -> None:
    for name in (DIRECT, IM2COL):
        module = module_of("conv2d_nhwc_float32")
        module.update_func(module.get_global_var("main"), module["main"].with_attr(ASKED_FOR, name))
        (found,) = variants_of(module, "llvm")
        assert (found.name, found.is_seldom_best) == (name, False)


def found_in(tensors: list[Any], *, constant: bool = True) -> TwoFactors | None:
    schedule = tvm.s_tir.Schedule(product_tiles_module_of(tensors, constant=constant))
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


# A form of convolutions that a target asks for is what is searched, and what is built.

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
