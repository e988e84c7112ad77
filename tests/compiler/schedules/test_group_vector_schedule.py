"""A grouped convolution in steps of vectors computes what numpy does, whatever its schedule."""

import random
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tvm import te, topi

from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tests.support.models.workload_corpus import primitive, workloads
from tests.support.present import present
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules import convolutions, grouped_convolutions
from tunegate.compiler.schedules.algorithm_variants import GROUP_VECTORS
from tunegate.compiler.schedules.default_schedule import with_group_vectors
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target
PADS = st.tuples(*[st.integers(0, 2)] * 4)
SHAPES = st.builds(
    Shape,
    batch=st.integers(1, 2),
    groups=st.sampled_from([2, 3, 8, 12, 32]),
    channels_in=st.sampled_from([1, 2, 3, 4, 8, 20]),
    channels_out=st.sampled_from([1, 2, 3, 4, 8, 16, 20]),
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    window=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    pads=PADS,
)
OF_EACH_KIND = [
    Shape(),
    Shape(channels_in=20, channels_out=20, groups=3),
    Shape(channels_in=1, channels_out=1, groups=24, stride=2),
    Shape(channels_in=2, channels_out=6, groups=4, dilation=2, pads=(2, 1, 0, 2)),
    Shape(window=(1, 1), pads=(0, 0, 0, 0)),
]


def computed(module: Any, shape: Shape, *, has_followers: bool = True) -> np.ndarray:
    return run(module, arguments(shape, has_followers=has_followers), shape)


@pytest.mark.parametrize("shape", OF_EACH_KIND)
def test_every_schedule_of_it_computes_the_same_and_is_found_again(shape: Shape) -> None:
    space = DesignSpace(workload(shape), TARGET)
    expected = convolved(shape, *arguments(shape))
    own = {d for d, t in space.templates.items() if t.variant.name == GROUP_VECTORS}
    tried = 0
    for schedule in space.sample(4, random.Random(5)):
        found = present(space.describe(schedule.trace))
        if found.template in own:
            tried += 1
            assert np.array_equal(computed(present(space.replay(found)).mod, shape), expected)
    assert tried > 0


def test_weights_are_packed_when_a_model_is_built() -> None:
    vectors = present(grouped_convolutions.group_vectors(workload(Shape()).module["main"]))
    kernel = built_kernel(vectors.module, TARGET).kernel
    assert kernel.packs == (1,)
    packed = present(kernel.moves)[0].of(arguments(Shape())[1])
    assert packed.shape == (2, 3, 3, 4, 16)
    assert np.array_equal(packed[1, 2, 0, 3], arguments(Shape())[1][2, 0, 3, 16:])


def test_weights_that_are_no_constants_are_read_where_they_are() -> None:
    shape = Shape(groups=6, channels_in=3, channels_out=20)
    plain = workload(shape, has_constants=False)
    vectors = present(grouped_convolutions.group_vectors(plain.module["main"]))
    assert built_kernel(vectors.module, TARGET).kernel.packs == ()
    assert np.array_equal(computed(vectors.module, shape), convolved(shape, *arguments(shape)))


# A grouped convolution without a record is computed in vectors, and all its bits stay.

TWO_THREADS = tvm_target(TargetConfig(name="cpu", threads=2)).target


@given(SHAPES)
@settings(max_examples=10)
def test_it_computes_what_numpy_does(shape: Shape) -> None:
    assume(shape.is_possible)
    scheduled = with_group_vectors(workload(shape).module, TARGET)
    assert np.array_equal(computed(scheduled, shape), convolved(shape, *arguments(shape)))


@pytest.mark.parametrize("shape", OF_EACH_KIND)
def test_each_kind_has_its_own_schedule_with_the_same_sums_to_the_last_bit(shape: Shape) -> None:
    plain = workload(shape).module
    main = with_group_vectors(plain, TARGET)["main"]
    assert main.attrs[IS_SCHEDULED]
    assert str(main.attrs["global_symbol"]) == "main"
    random = np.random.default_rng(3)
    given = [random.normal(size=each.shape).astype("float32") for each in arguments(shape)]
    assert np.array_equal(run(tvm.IRModule({"main": main}), given, shape), run(plain, given, shape))


def run(module: Any, given: list[np.ndarray], shape: Shape) -> np.ndarray:
    kernel = built_kernel(module, TARGET)
    output = tvm.runtime.tensor(np.full_like(convolved(shape, *arguments(shape)), np.nan))
    tensors = [tvm.runtime.tensor(each) for each in given]
    kernel.function["main"](*kernel.arguments([*tensors, output]))
    found: np.ndarray = output.numpy()
    return found


def test_what_has_a_schedule_or_is_no_grouped_convolution_stays_as_it_is() -> None:
    scheduled = with_group_vectors(workload(Shape()).module, TARGET)
    assert with_group_vectors(scheduled, TARGET) is scheduled
    nearly_empty = workload(Shape(groups=2, channels_in=40, channels_out=3)).module
    assert with_group_vectors(nearly_empty, TARGET) is nearly_empty


def test_a_large_one_is_shared_out_to_the_threads_of_the_target() -> None:
    shape = Shape(width=40, height=40)
    scheduled = with_group_vectors(workload(shape).module, TWO_THREADS)
    assert "T.parallel" in str(scheduled)
    assert np.array_equal(computed(scheduled, shape), convolved(shape, *arguments(shape)))


def test_narrower_registers_hold_fewer_sums() -> None:
    shape = Shape(groups=2, channels_in=32, channels_out=64, width=28)
    wide, narrow = (
        str(with_group_vectors(workload(shape).module, cpu(name))) for name in ("znver5", "haswell")
    )
    assert wide != narrow


def cpu(name: str) -> Any:
    return tvm_target(TargetConfig(name="cpu", cpu=name, threads=1)).target


# A grouped convolution is found where it is one, and nothing else is taken for it.


def found_in(function: Any) -> Any:
    return convolutions.grouped_convolution(canonical_workload(function).module["main"])


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(channels_in=1, channels_out=1),
        Shape(channels_in=1, channels_out=3),
        Shape(window=(1, 1), pads=(0, 0, 0, 0)),
        Shape(stride=2, dilation=2, pads=(0, 1, 2, 2)),
    ],
)
def test_it_is_found_with_its_groups(shape: Shape) -> None:
    found = present(convolutions.grouped_convolution(workload(shape).module["main"]))
    assert found.groups == convolutions.Groups(shape.groups, shape.channels_in, shape.channels_out)
    assert found.weight_extents[:2] == shape.window


@pytest.mark.parametrize(
    "name",
    [
        "conv2d_nhwc_float32",
        "conv2d_grouped_float32",
        "conv2d_depthwise_float32",
        "conv2d_grouped_nhwc_float16",
        "conv2d_int8",
        "matmul_float32",
        "max_pool_float32",
    ],
)
def test_nothing_else_is_taken_for_it(name: str) -> None:
    assert found_in(primitive(workloads()[name])) is None


def test_weights_of_another_group_are_no_grouped_convolution() -> None:
    image, weights = te.placeholder((1, 5, 5, 8)), te.placeholder((3, 3, 2, 8))
    y, x, c = (te.reduce_axis((0, n)) for n in (3, 3, 2))
    shifted = te.compute(
        (1, 3, 3, 8),
        lambda n, h, w, k: te.sum(
            image[n, h + y, w + x, (7 - k) // 2 * 2 + c] * weights[y, x, c, k], axis=[y, x, c]
        ),
    )
    assert found_in(te.create_prim_func([image, weights, shifted])) is None


def test_of_two_in_a_function_none_is_taken() -> None:
    image, weights = te.placeholder((1, 9, 9, 8)), te.placeholder((3, 3, 2, 8))
    first = topi.nn.group_conv2d_nhwc(image, weights, 1, 1, 1, 4, out_dtype="float32")
    second = topi.nn.group_conv2d_nhwc(first, weights, 1, 1, 1, 4, out_dtype="float32")
    assert found_in(te.create_prim_func([image, weights, second])) is None


# Vectors of channels fill registers, and never cut a group in two where they span several.

GROUPS = st.builds(
    convolutions.Groups, st.integers(1, 300), st.integers(1, 130), st.integers(1, 130)
)


@given(GROUPS)
def test_vectors_cover_all_channels(groups: convolutions.Groups) -> None:
    vectors = grouped_convolutions.channel_vectors(groups)
    if vectors is None:
        return
    assert groups.number * groups.channels_out % vectors.lanes == 0
    if vectors.groups:
        assert groups.number % vectors.groups == 0
        assert vectors.lanes == vectors.groups * groups.channels_out
    else:
        assert groups.channels_out % vectors.lanes == 0
