"""Compiles with g++: the two libraries once, and each text of kernels to a shared object, which
stands where a cubin would. nvcc and NVRTC of the stand-in are fronts of this."""

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cuda_stand_in.kernel_text import MAX_STATIC_SHARED, assembler_log, for_a_cpu

ROOT = Path(__file__).resolve().parent
_DRIVER, _INCLUDE = ROOT / "driver", ROOT / "toolkit" / "include"
_LIBRARY_FLAGS = (
    *("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-pthread", "-U_FORTIFY_SOURCE"),
    # Kernels read threadIdx there as if it were their own: see kernel_abi.h.
    *("-ftls-model=initial-exec", "-Wall", "-Wextra", "-Wno-missing-field-initializers"),
)
_KERNEL_FLAGS = (
    # No name of a module may outlive it: the loader would keep the module for it.
    *("-std=c++17", "-O1", "-fPIC", "-fno-gnu-unique", "-march=x86-64-v3", "-w"),
    # As on a device: integers wrap, and memory is read as what it is asked for.
    *("-fwrapv", "-fno-strict-aliasing", "-fmax-errors=5"),
    # A device has no page beside a thread's own array, and would spoil its neighbour.
    *("-fsanitize=bounds", "-fsanitize-undefined-trap-on-error"),
)
_ARCH = re.compile(r"(?:sm|compute)_(\d+)")
_SOURCES = ("errors", "machine", "fibers", "faults", "shared_memory", "blocks", "memory")
_SOURCES_OF_WORK = ("work", "streams", "copies", "libcuda")
_HEADER = "stand_in/device.h"


class RefusedTextError(Exception):
    """The compiler's complaint of a text."""


def cache_directory() -> Path:
    """Returns the directory, in no checkout, of what is compiled for one state of the sources."""
    return _cache_root() / sources_digest()[:16]


def sources_digest() -> str:
    """Of the libraries, the headers and how they are compiled."""
    digest = hashlib.sha256()
    headers = sorted(each for each in _INCLUDE.rglob("*") if each.is_file())
    for file in (*sorted(_DRIVER.iterdir()), *headers, Path(__file__)):
        digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def build() -> Path:
    """The directory of the libraries, which are built where that has not been done."""
    place = cache_directory()
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place / "build.lock"):
        if not (place / "built").exists():
            _build_libraries(place / "lib")
            _precompile(place / "include")
            (place / "built").touch()
    return place


def compiled(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The shared object, and what the assembler says of its kernels. Raises RefusedTextError."""
    arch = next((int(found[1]) for each in options if (found := _ARCH.search(each))), 90)
    # What a paced device takes its time from; counting costs time itself.
    cpu = for_a_cpu(text, arch, counts_steps="NVIDIA_STAND_IN_PACE" in os.environ)
    place = build()
    kept = place / "kernels" / f"{hashlib.sha256(cpu.source.encode()).hexdigest()}.so"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        _compile_kernels(cpu.source, place, kept)
    shared = _shared_bytes(kept, place)
    for name, size in shared.items():
        if size > MAX_STATIC_SHARED:
            raise RefusedTextError(
                f"ptxas error   : Entry function '{name}' uses too much shared data"
                f" ({size:#x} bytes, {MAX_STATIC_SHARED:#x} max)"
            )
    return kept.read_bytes(), assembler_log(cpu.kernels, shared, arch)


def _cache_root() -> Path:
    given = os.environ.get("NVIDIA_STAND_IN_CACHE")
    return Path(given) if given else Path(tempfile.gettempdir()) / f"cuda-stand-in-{os.getuid()}"


def _build_libraries(into: Path) -> None:
    into.mkdir(exist_ok=True)
    sources = [_DRIVER / f"{name}.cpp" for name in (*_SOURCES, *_SOURCES_OF_WORK)]
    _run(
        "g++",
        *_LIBRARY_FLAGS,
        "-Wl,-soname,libcuda.so.1",
        *sources,
        "-ldl",
        "-o",
        into / "libcuda.so.1",
    )
    names = into / "libcudart.map"
    names.write_text("libcudart.so.13 { global: cuda*; local: *; };\n")
    _run(
        *("g++", *_LIBRARY_FLAGS, "-Wl,-soname,libcudart.so.13"),
        *(f"-Wl,--version-script={names}", "-Wl,-rpath,$ORIGIN", _DRIVER / "libcudart.cpp"),
        *(f"-L{into}", "-l:libcuda.so.1", "-o", into / "libcudart.so.13"),
    )


def _precompile(into: Path) -> None:
    """A header that g++ finds as <into>/device.h, already compiled."""
    into.mkdir(exist_ok=True)
    (into / "device.h").write_text(f'#include "{_INCLUDE / _HEADER}"\n')
    _run("g++", "-x", "c++-header", *_KERNEL_FLAGS, into / "device.h", "-o", into / "device.h.gch")


def _compile_kernels(source: str, place: Path, into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="cuda-stand-in-") as scratch:
        file, made = Path(scratch, "kernels.cpp"), Path(scratch, "kernels.so")
        file.write_text(source)
        done = _ask_compiler(
            [
                *("g++", "-include", str(place / "include" / "device.h"), *_KERNEL_FLAGS),
                *(f"-I{_INCLUDE}", "-shared", "-s", "-Wl,-Bsymbolic", str(file)),
                *(f"-L{place / 'lib'}", "-l:libcuda.so.1", "-o", str(made)),
            ]
        )
        if done.returncode:
            refused = place / "refused.cpp"
            refused.write_text(source)
            raise RefusedTextError(f"error: {done.stderr[:3000]}\nThe text is in {refused}")
        fresh = into.with_name(f"{into.stem}.{os.getpid()}.{os.urandom(4).hex()}")
        shutil.copyfile(made, fresh)
        fresh.replace(into)


class _Entry(ctypes.Structure):
    """KernelEntry of driver/kernel_abi.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("run_thread", ctypes.c_void_p),
        ("parameter_count", ctypes.c_uint),
        ("parameter_bytes", ctypes.c_void_p),
        ("parameter_is_pointer", ctypes.c_void_p),
        ("threads_wait", ctypes.c_uint),
        ("max_threads", ctypes.c_uint),
        ("registers", ctypes.c_uint),
        ("shared_count", ctypes.c_uint),
        ("shared_bytes", ctypes.POINTER(ctypes.c_uint)),
    ]


def _shared_bytes(library: Path, place: Path) -> dict[str, int]:
    """Bytes of static shared memory of each kernel, which only the compiler knows."""
    ctypes.CDLL(str(place / "lib" / "libcuda.so.1"))
    held = ctypes.CDLL(str(library))
    count = ctypes.c_uint.in_dll(held, "stand_in_kernel_count").value
    table = (_Entry * count).in_dll(held, "stand_in_kernels")
    return {
        entry.name.decode(): sum(entry.shared_bytes[n] for n in range(entry.shared_count))
        for entry in table
    }


def _ask_compiler(line: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The ended program. Children import this module: it needs no pytest."""
    return subprocess.run(line, capture_output=True, text=True, check=False)


def _run(*command: object) -> None:
    done = _ask_compiler([str(each) for each in command])
    if done.returncode:
        raise RuntimeError(f"g++ refuses the stand-in: {done.stderr[:3000]}")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def nvcc(arguments: Sequence[str]) -> int:
    """As much of nvcc as TVM asks for. Returns the exit code."""
    if {"--version", "-V"} & set(arguments):
        print("nvcc: NVIDIA (R) Cuda compiler driver (stand-in)")
        print("Cuda compilation tools, release 13.0, V13.0.0")
        return 0
    given = list(arguments)
    into = given[given.index("-o") + 1]
    (source,) = (each for each in given if each.endswith(".cu"))
    architectures = [each for each in given if _ARCH.search(each) and not each.startswith("/")]
    try:
        image, said = compiled(Path(source).read_text(), architectures)
    except RefusedTextError as error:
        print(error)
        return 1
    Path(into).write_bytes(image)
    print(said)
    return 0


if __name__ == "__main__":
    sys.exit(nvcc(sys.argv[1:]))
