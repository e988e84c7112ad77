"""As much of cuda.bindings.nvrtc as TVM and the product ask for; the compiler is g++."""

import ctypes
import enum
import sys
from pathlib import Path

# Whoever compiles a kernel knows nothing of the tests' packages.
_CHECKOUT = str(Path(__file__).resolve().parents[5])
sys.path.append(_CHECKOUT)
try:
    from tests.cuda_stand_in import toolchain
finally:
    sys.path.remove(_CHECKOUT)


class nvrtcResult(enum.IntEnum):
    NVRTC_SUCCESS = 0
    NVRTC_ERROR_COMPILATION = 6


_DONE = nvrtcResult.NVRTC_SUCCESS


class _Program:
    def __init__(self, source: bytes) -> None:
        self.source, self.image, self.log = source, b"", b""


def nvrtcVersion() -> tuple[nvrtcResult, int, int]:
    return _DONE, 13, 0


def nvrtcCreateProgram(
    source: bytes, name: bytes, count: int, headers: None, names: None
) -> tuple[nvrtcResult, _Program]:
    return _DONE, _Program(source)


def nvrtcCompileProgram(program: _Program, count: int, options: list[bytes]) -> tuple[nvrtcResult]:
    assert count == len(options)
    try:
        program.image, said = toolchain.compiled(
            program.source.decode(), [each.decode() for each in options]
        )
    except toolchain.RefusedTextError as error:
        program.log = str(error).encode()
        return (nvrtcResult.NVRTC_ERROR_COMPILATION,)
    program.log = said.encode()
    return (_DONE,)


def nvrtcDestroyProgram(program: _Program) -> tuple[nvrtcResult]:
    return (_DONE,)


def nvrtcGetErrorString(result: nvrtcResult) -> tuple[nvrtcResult, bytes]:
    return _DONE, result.name.encode()


def nvrtcGetProgramLogSize(program: _Program) -> tuple[nvrtcResult, int]:
    return _DONE, len(program.log) + 1


def nvrtcGetProgramLog(program: _Program, into: bytes | bytearray) -> tuple[nvrtcResult]:
    return _write(into, program.log + b"\0")


def nvrtcGetCUBINSize(program: _Program) -> tuple[nvrtcResult, int]:
    return _DONE, len(program.image)


def nvrtcGetCUBIN(program: _Program, into: bytes | bytearray) -> tuple[nvrtcResult]:
    return _write(into, program.image)


nvrtcGetPTXSize, nvrtcGetPTX = nvrtcGetCUBINSize, nvrtcGetCUBIN


def _write(into: bytes | bytearray, what: bytes) -> tuple[nvrtcResult]:
    """The library writes into bytes, too, which Python calls immutable."""
    if isinstance(into, bytearray):
        into[: len(what)] = what
    else:
        ctypes.memmove(ctypes.cast(ctypes.c_char_p(into), ctypes.c_void_p), what, len(what))
    return (_DONE,)
