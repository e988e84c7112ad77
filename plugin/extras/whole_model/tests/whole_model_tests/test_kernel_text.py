"""The text of a kernel computes what ONNX Runtime does: compiled for a CPU, where blocks are
threads that meet at the kernel's own barrier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support import programs

from tunegate_whole_model.persistent.device_code import DeviceKernel, fits
from tunegate_whole_model.stages.contexts import Context
from whole_model_tests.models import Runner, staged, text_of, whole


@pytest.mark.parametrize(
    ("name", "way", "threads", "grid"),
    [
        ("conv", "plain", 128, 1),
        ("conv", "recorded", 256, 3),
        ("chain", "plain", 128, 3),
        ("transformer", "plain", 128, 2),
        ("transformer", "recorded", 256, 3),
    ],
)
def test_it_computes_what_onnx_runtime_does(
    name: str, way: str, threads: int, grid: int, tmp_path: Path
) -> None:
    programs.require("g++")
    runner = Runner(name, way, threads, tmp_path, grid=grid)
    for _ in range(2):  # the barrier is left as it was found
        ended, made, wanted = runner.outputs()
        assert ended
        for ours, theirs in zip(made, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def test_a_block_that_never_comes_ends_the_kernel_with_an_error(tmp_path: Path) -> None:
    """A grid of three of which the device has room for two."""
    programs.require("g++")
    runner = Runner("chain", "plain", 128, tmp_path, grid=3, patience=10_000)
    assert runner.outputs(blocks=2)[0] is False


def test_nothing_is_read_through_a_cache_that_nobody_keeps_up_to_date() -> None:
    model = whole("transformer", 256)
    text = text_of(model, staged(model, "recorded", 256), Context(2, 256))
    assert "__launch_bounds__(256, 2)" in text
    assert "__restrict__" not in text
    assert "__ldg" not in text


def test_what_is_called_at_several_places_is_compiled_once() -> None:
    model = whole("chain", 128)
    text = text_of(model, staged(model, "plain", 128), Context(1, 128))
    assert text.count("__noinline__ void plain_matmul_nest0(") == 1
    assert text.count(" plain_matmul_nest0(") == 1 + 3


def kernel(body: str, threads: int, blocks: int = 7) -> DeviceKernel:
    return DeviceKernel("k", ("float* x",), (0,), body, (blocks, 1, 1), (threads, 1, 1))


def test_threads_that_have_nothing_to_do_with_each_other_fit_into_any_block() -> None:
    assert fits(kernel("  x[0] = 1;", 1024), 128)
    assert not fits(kernel("  x[0] = 1;", 1024, blocks=2**22), 128)


@pytest.mark.parametrize(("threads", "does"), [(128, True), (96, True), (20, True), (40, False)])
def test_threads_that_wait_for_each_other_need_whole_warps(threads: int, does: bool) -> None:
    assert fits(kernel("  __syncthreads();", threads), 128) is does


def test_a_kernel_with_more_threads_or_shared_memory_of_any_size_does_not_fit() -> None:
    assert not fits(kernel("  __syncthreads();", 256), 128)
    assert not fits(kernel("  extern __shared__ uchar all[];", 64), 128)
    assert fits(kernel("  __shared__ alignas(64) float all[32];", 64), 128)
