"""Changes TVM's CUDA texts: a maximum and a minimum keep NaN, fragments of TF32 get their name, and
headers that a kernel does not need are not read.

Every text from TVM begins with two headers of CUDA's C++ library. Reading them takes NVRTC a fifth
to two thirds of a candidate's build, and a kernel needs only eight integer type names from them. So
the names are declared instead. A text that does not compile this way is compiled as TVM does it.

CUDA's maximum of NaN and a number is the number; ONNX Runtime's is NaN. So each text defines its
own `max` and `min`. The kernels stay as TVM makes them: its schedules know a maximum by its form.
"""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tvm
import tvm_ffi
from tvm.support import nvcc

_CALLBACK, _POSTPROCESSOR = "tvm_callback_cuda_compile", "tvm_callback_cuda_postproc"
_BEGINNING = re.compile(r"\A\s*#ifdef __CUDACC_RTC__\n.*?^#endif\n", re.DOTALL | re.MULTILINE)
_OF_THE_LIBRARY = re.compile(r"\b(?:std|cuda)::|#include <(?:cuda/|nvshmem)|\bCUtensorMap\b")
"""Uses of the C++ library after the headers, and texts that TVM compiles in other ways."""
_NAMES = """\
#ifdef __CUDACC_RTC__
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#define __asm__ asm
#define __volatile__ volatile
#define INFINITY __int_as_float(0x7f800000)
#endif
"""
_FIRST_KERNEL = re.compile(r'^extern "C" __global__ ', re.MULTILINE)
_MAXIMUM = re.compile(r"\b(?:max|min)\(")
_KEEPS_NAN = """\
template <class A, class B>
static __device__ __forceinline__ auto tunegate_NAME(A a, B b) -> decltype(NAME(a, b)) {
  return NAME(a, b);
}
static __device__ __forceinline__ double tunegate_NAME(double a, double b) {
  return a SIGN b || a != a ? a : b;
}
static __device__ __forceinline__ float tunegate_NAME(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float kept;
  asm("NAME.NaN.f32 %0, %1, %2;" : "=f"(kept) : "f"(a), "f"(b));
  return kept;
#else
  return a SIGN b || a != a ? a : b;
#endif
}
#ifdef __CUDA_FP16_H__
static __device__ __forceinline__ half tunegate_NAME(half a, half b) {
  return __hNAME_nan(a, b);
}
#endif
#ifdef __CUDA_BF16_H__
static __device__ __forceinline__ nv_bfloat16 tunegate_NAME(nv_bfloat16 a, nv_bfloat16 b) {
  return __hNAME_nan(a, b);
}
#endif
#define NAME tunegate_NAME
"""
"""From sm_80 on each of these is one instruction, as CUDA's own."""
_OPTIONS = ("-default-device", "--device-int128", "--use_fast_math")
"""TVM's options that concern the code."""
_ONLY_TELL = {"-v", "--warn-on-local-memory-usage"}
"""TVM's options that only print assembler output, which nobody reads."""
_MODE = "TVM_CUDA_COMPILE_MODE"


def without_library_headers(text: str) -> str | None:
    """Returns the text with type names instead of the headers; None if it begins differently or
    needs more of the library."""
    rest, replaced = _BEGINNING.subn("", text, count=1)
    if not replaced or _OF_THE_LIBRARY.search(rest):
        return None
    return _NAMES + rest


_TFLOAT32 = re.compile(r"(wmma::matrix_[ab], 16, 16, 8, )half\b")
"""The fragments that `tensor_core_kernel.py` writes: halves have none of this depth."""


def changed_text(text: str, _target: Any = None) -> str:
    """Returns the text with fragments of TF32, and with maxima and minima that keep NaN."""
    return with_nan(_TFLOAT32.sub(r"\1nvcuda::wmma::precision::tf32", text))


def with_nan(text: str) -> str:
    """Returns the text with maxima and minima that are NaN where an operand is."""
    first = _FIRST_KERNEL.search(text)
    if first is None or not _MAXIMUM.search(text, first.start()):
        return text
    signs = {"max": ">", "min": "<"}
    ours = [_KEEPS_NAN.replace("NAME", name).replace("SIGN", signs[name]) for name in signs]
    return "".join((text[: first.start()], *ours, text[first.start() :]))


@cache
def change_texts() -> None:
    """Makes TVM change all CUDA texts of this process, and compile them without the headers where
    NVRTC accepts them."""
    tvm_ffi.register_global_func(_POSTPROCESSOR, changed_text, override=True)
    if os.environ.get(_MODE) == "nvrtc":
        tvm_ffi.register_global_func(_CALLBACK, _compile, override=True)


def _compile(text: str) -> Any:
    brief = without_library_headers(text)
    code = machine_code(brief) if brief is not None else None
    return nvcc.tvm_callback_cuda_compile(text) if code is None else code


def machine_code(text: str) -> bytearray | None:
    """Returns the machine code of a text for the current target, None if NVRTC rejects it."""
    from cuda.bindings import nvrtc  # noqa: PLC0415 -- an extra

    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"tvm_kernels.cu", 0, None, None)
    try:
        options = [option.encode() for option in _options()]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return None
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        cubin = bytearray(size)
        nvrtc.nvrtcGetCUBIN(program, cubin)
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _options() -> Iterator[str]:
    target = tvm.target.Target.current(allow_none=True)
    version = nvcc.get_target_compute_version(target).replace(".", "")
    yield f"--gpu-architecture=sm_{version}"
    yield from _OPTIONS
    flags = nvcc._ptxas_option_flags()
    yield from (f"--ptxas-options={flag}" for flag in flags if flag not in _ONLY_TELL)
    headers = Path(os.environ["CUDA_PATH"]) / "include"
    yield from (f"-I{each}" for each in (headers, headers / "cccl") if each.is_dir())
    yield from os.environ.get("TVM_CUDA_NVRTC_EXTRA_OPTS", "").split()
