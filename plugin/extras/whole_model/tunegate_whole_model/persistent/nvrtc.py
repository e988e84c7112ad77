"""Compiles CUDA C to machine code by NVRTC, with the compiler's figures of each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.compiler.cuda_text import without_library_headers
from tunegate.errors import NotOfferedError

_OPTIONS = (
    "-default-device",
    "--device-int128",
    "--use_fast_math",  # as TVM compiles the kernels that stand beside it
    "--ptxas-options=-v",
    "-D__NV_SILENCE_DEPRECATION_BEGIN=",
    "-D__NV_SILENCE_DEPRECATION_END=",
)
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLED = re.compile(r"(\d+) bytes spill stores")


class KernelFigures(msgspec.Struct, frozen=True):
    """The compiler's figures of a kernel: registers per thread, bytes of shared memory per block,
    and bytes that a thread spills to memory."""

    registers: int
    shared_bytes: int
    spilled_bytes: int


class CompiledKernels(NamedTuple):
    """Machine code for one architecture, with the figures of each kernel by name."""

    cubin: bytes
    figures: Mapping[str, KernelFigures]


def has_nvrtc(toolkit: Mapping[str, str]) -> bool:
    """Returns whether `machine_code` works with this toolkit, as `cuda_variables` found it."""
    return (
        toolkit.get("TVM_CUDA_COMPILE_MODE") == "nvrtc" and find_spec("cuda.bindings") is not None
    )


def machine_code(text: str, arch: str, toolkit: Mapping[str, str]) -> CompiledKernels:
    """Compiles for an architecture such as sm_90. Raises NotOfferedError with the first line of the
    compiler's error."""
    brief = without_library_headers(text)
    with suppress(NotOfferedError):
        if brief is not None:
            return _compile(brief, arch, toolkit)
    return _compile(text, arch, toolkit)


def _compile(text: str, arch: str, toolkit: Mapping[str, str]) -> CompiledKernels:
    from cuda.bindings import nvrtc  # noqa: PLC0415 -- an extra

    source = text.replace("#include <cuda.h>", "").encode()
    _, program = nvrtc.nvrtcCreateProgram(source, b"whole.cu", 0, None, None)
    try:
        options = [each.encode() for each in _options(arch, toolkit)]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        said = log.decode(errors="replace").strip("\0 \n")
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise NotOfferedError(f"its kernel does not compile ({_first_error(said)})")
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = b"\0" * size
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return CompiledKernels(cubin, figures_of(said))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def figures_of(output: str) -> dict[str, KernelFigures]:
    """Returns the figures of each kernel from the assembler's output."""
    names_and_parts = _ENTRY.split(output)[1:]
    return {
        name: KernelFigures(
            registers=max(_numbers(_REGISTERS, part), default=0),
            shared_bytes=max(_numbers(_SHARED, part), default=0),
            spilled_bytes=sum(_numbers(_SPILLED, part)),
        )
        for name, part in zip(names_and_parts[::2], names_and_parts[1::2], strict=True)
    }


def _options(arch: str, toolkit: Mapping[str, str]) -> Iterator[str]:
    yield f"--gpu-architecture={arch}"
    yield from _OPTIONS
    headers = Path(toolkit["CUDA_PATH"]) / "include"
    yield from (f"-I{each}" for each in (headers, headers / "cccl") if each.is_dir())


def _numbers(pattern: re.Pattern[str], output: str) -> list[int]:
    return [int(each) for each in pattern.findall(output)]


def _first_error(output: str) -> str:
    lines = output.splitlines() or ["no reason given"]
    return next((each for each in lines if "error" in each), lines[0]).strip()[:200]
