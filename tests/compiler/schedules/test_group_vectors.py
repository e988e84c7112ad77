"""A grouped convolution in steps of vectors computes what numpy does, whatever its schedule."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import GROUP_VECTORS
from tunegate.compiler.schedules.grouped_convolutions import group_vectors
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload
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
    expected = convolved(shape, *arguments(shape))
    kernel = built_kernel(module, TARGET)
    output = tvm.runtime.tensor(np.full_like(expected, np.nan))
    given = [tvm.runtime.tensor(a) for a in arguments(shape, has_followers=has_followers)]
    kernel.function["main"](*kernel.arguments([*given, output]))
    found: np.ndarray = output.numpy()
    return found


@given(SHAPES)
@settings(max_examples=15)
def test_it_computes_what_numpy_does(shape: Shape) -> None:
    assume(shape.is_possible)
    vectors = group_vectors(workload(shape).module["main"])
    if vectors is None:
        return
    assert np.array_equal(computed(vectors.module, shape), convolved(shape, *arguments(shape)))


@pytest.mark.parametrize("shape", OF_EACH_KIND)
def test_every_schedule_of_it_computes_the_same_and_is_found_again(shape: Shape) -> None:
    space = DesignSpace(workload(shape), TARGET)
    expected = convolved(shape, *arguments(shape))
    own = {d for d, t in space.templates.items() if t.variant.name == GROUP_VECTORS}
    tried = 0
    for schedule in space.sample(4, random.Random(5)):
        found = space.describe(schedule.trace)
        assert found is not None
        if found.template in own:
            tried += 1
            again = space.replay(found)
            assert again is not None
            assert np.array_equal(computed(again.mod, shape), expected)
    assert tried > 0


def test_weights_are_packed_when_a_model_is_built() -> None:
    vectors = group_vectors(workload(Shape()).module["main"])
    assert vectors is not None
    kernel = built_kernel(vectors.module, TARGET).kernel
    assert kernel.packs == (1,)
    assert kernel.moves is not None
    packed = kernel.moves[0].of(arguments(Shape())[1])
    assert packed.shape == (2, 3, 3, 4, 16)
    assert np.array_equal(packed[1, 2, 0, 3], arguments(Shape())[1][2, 0, 3, 16:])


def test_weights_that_are_no_constants_are_read_where_they_are() -> None:
    shape = Shape(groups=6, channels_in=3, channels_out=20)
    plain = workload(shape, has_constants=False)
    vectors = group_vectors(plain.module["main"])
    assert vectors is not None
    assert built_kernel(vectors.module, TARGET).kernel.packs == ()
    assert np.array_equal(computed(vectors.module, shape), convolved(shape, *arguments(shape)))


def test_what_nothing_follows_is_written_at_once() -> None:
    shape = Shape()
    plain: Workload = workload(shape, has_followers=False)
    vectors = group_vectors(plain.module["main"])
    assert vectors is not None
    found = computed(vectors.module, shape, has_followers=False)
    assert np.array_equal(found, convolved(shape, *arguments(shape, has_followers=False)))
