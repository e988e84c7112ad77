"""Finds the CUDA toolkit: TVM looks in three places, but not in packages that pip installs."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

_PLACES = ("CUDA_PATH", "CUDA_HOME")
_USUAL = Path("/usr/local/cuda")
_PACKAGES = ("nvidia.cu13", "nvidia.cu12")
_HEADERS = ("include/cuda.h", "include/cuda_runtime.h")
_CUDA_VERSION = re.compile(r"^#define CUDA_VERSION (\d+)", re.MULTILINE)
_THOUSAND = 1000


def cuda_variables(
    variables: Mapping[str, str] = os.environ,
    usual: Path = _USUAL,
    packages: Sequence[str] = _PACKAGES,
) -> dict[str, str]:
    """Returns the variables for processes that compile for CUDA, none without a toolkit.

    NVRTC compiles several times as fast as nvcc, but needs bindings of the toolkit's major version;
    without them nvcc is used.
    """
    root = next((at for at in _roots(variables, usual, packages) if _is_toolkit(at)), None)
    if root is None:
        return {}
    libraries = root / "include" / "cccl"
    settings = {
        "CUDA_PATH": str(root),
        "TVM_CUDA_COMPILE_MODE": "nvrtc" if _bindings_major() == _major(root) else "nvcc",
    }
    if libraries.is_dir():
        settings["TVM_CUDA_NVRTC_EXTRA_OPTS"] = f"-I{libraries}"
    if settings["TVM_CUDA_COMPILE_MODE"] == "nvcc":
        settings["PATH"] = f"{root / 'bin'}{os.pathsep}{variables.get('PATH', '')}"
    return settings


def _roots(variables: Mapping[str, str], usual: Path, packages: Sequence[str]) -> Iterator[Path]:
    """Yields the possible roots, the machine's own toolkit first: it fits the machine's driver."""
    places = (Path(variables.get(name, "")) for name in _PLACES)
    yield from (place for place in places if place.is_absolute())  # not in the checkout
    compiler = shutil.which("nvcc", path=variables.get("PATH"))
    if compiler is not None:
        yield Path(compiler).resolve().parent.parent
    yield usual
    for package in packages:
        yield from _package(package)


def _package(name: str) -> Iterator[Path]:
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place)


def _is_toolkit(root: Path) -> bool:
    return all((root / header).is_file() for header in _HEADERS)


def _major(root: Path) -> int | None:
    match = _CUDA_VERSION.search((root / _HEADERS[0]).read_text(errors="replace"))
    return int(match[1]) // _THOUSAND if match else None


def _bindings_major() -> int:
    # Slow to import, and each launch imports this module for the memory of a GPU's kernels.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    try:
        return int(version("cuda-bindings").partition(".")[0])
    except PackageNotFoundError:
        return 0
