"""NVRTC compiles for an architecture, and says what kernels need: without a GPU."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tunegate.errors import NotOfferedError
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate_whole_model.persistent.nvrtc import KernelFigures, figures_of, has_nvrtc, machine_code

SAID = """ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
ptxas         .     8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 96 registers, used 1 barriers, 6912 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Function properties for other
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""
KERNEL = """extern "C" __global__ void __launch_bounds__(64) turned(float* x) {
  __shared__ float all[64];
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = all[63 - threadIdx.x];
}"""


@pytest.fixture
def toolkit(tmp_path: Path) -> dict[str, str]:
    """The compiler that pip has installed here."""
    return cuda_variables({"PATH": "/nowhere"}, usual=tmp_path)


def test_figures_are_those_of_each_kernel() -> None:
    assert figures_of(SAID) == {
        "one": KernelFigures(registers=96, shared_bytes=6912, spilled_bytes=8),
        "other": KernelFigures(registers=12, shared_bytes=0, spilled_bytes=0),
    }


def test_a_kernel_is_code_for_one_architecture(toolkit: dict[str, str]) -> None:
    assert has_nvrtc(toolkit)
    found = machine_code(KERNEL, "sm_86", toolkit)
    assert found.figures["turned"].shared_bytes == 256
    assert found.figures["turned"].registers > 0
    (flags,) = struct.unpack_from("<I", found.cubin, 48)
    assert flags >> 8 & 0xFF == 86


def test_what_does_not_compile_is_told(toolkit: dict[str, str]) -> None:
    with pytest.raises(NotOfferedError, match=r"does not compile .*error.*missing"):
        machine_code(KERNEL.replace("x[threadIdx.x];", "missing;"), "sm_90", toolkit)


def test_a_toolkit_that_is_compiled_by_nvcc_has_none() -> None:
    assert not has_nvrtc({"TVM_CUDA_COMPILE_MODE": "nvcc"})
    assert not has_nvrtc({})
