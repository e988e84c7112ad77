"""A grouped convolution without a record is computed in vectors, and all its bits stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import assume, given, settings

from tests.compiler.schedules.test_group_vectors import OF_EACH_KIND, SHAPES, TARGET, computed
from tests.support.models.grouped_convolutions import Shape, arguments, convolved, workload
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.schedules.default_schedule import with_group_vectors
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

TWO_THREADS = tvm_target(TargetConfig(name="cpu", threads=2)).target


@given(SHAPES)
@settings(max_examples=10)
def test_it_computes_what_numpy_does(shape: Shape) -> None:
    assume(shape.is_possible)
    scheduled = with_group_vectors(workload(shape).module, TARGET)
    assert np.array_equal(computed(scheduled, shape), convolved(shape, *arguments(shape)))


@pytest.mark.parametrize("shape", OF_EACH_KIND)
def test_each_kind_has_a_schedule_of_its_own(shape: Shape) -> None:
    main = with_group_vectors(workload(shape).module, TARGET)["main"]
    assert main.attrs[IS_SCHEDULED]
    assert str(main.attrs["global_symbol"]) == "main"
    assert np.array_equal(
        computed(tvm.IRModule({"main": main}), shape), convolved(shape, *arguments(shape))
    )


@pytest.mark.parametrize("shape", [Shape(), Shape(channels_in=20, channels_out=20, groups=3)])
def test_sums_are_those_of_the_function_to_the_last_bit(shape: Shape) -> None:
    plain = workload(shape).module
    random = np.random.default_rng(3)
    given = [random.normal(size=each.shape).astype("float32") for each in arguments(shape)]
    as_written = run(plain, given, shape)
    assert np.array_equal(run(with_group_vectors(plain, TARGET), given, shape), as_written)


def run(module: Any, given: list[np.ndarray], shape: Shape) -> np.ndarray:
    kernel = built_kernel(module, TARGET)
    output = tvm.runtime.tensor(np.zeros_like(convolved(shape, *arguments(shape))))
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
