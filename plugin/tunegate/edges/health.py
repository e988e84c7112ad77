"""What must be right on a machine before a run can work, each as a check with its detail."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from tunegate.config import CacheConfig
from tunegate.edges import interpreter
from tunegate.edges.cores import default_threads, usable_cores
from tunegate.edges.nvidia.cuda_toolkit import cuda_variables
from tunegate.edges.nvidia.gpus import visible_gpus
from tunegate.edges.nvidia.kernel_clock import permits_kernel_clock
from tunegate.edges.shared_cache import open_store
from tunegate.errors import ConfigError
from tunegate_cache.stores.store import StoreUnavailableError

_PINNED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
_LINKERS = ("g++", "gcc", "clang++", "c++")
_SELF_TEST = "tunegate.edges.metaschedule.self_test"
_SELF_TEST_SECONDS = 120


class Check(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    detail: str


def machine_checks() -> Iterator[Check]:
    """Versions, the compiler's own self-test, the linker and the devices."""
    yield Check("python", ok=True, detail=platform.python_version())
    for distribution, wanted in _PINNED.items():
        yield _pinned(distribution, wanted)
    for distribution in ("onnx", "onnxruntime"):
        yield Check(distribution, ok=True, detail=version(distribution))
    yield _self_test()
    linker = next((found for name in _LINKERS if (found := shutil.which(name))), None)
    yield Check(
        "linker",
        ok=linker is not None,
        detail=linker or "none of g++, gcc, clang++: install one, builds are linked with it",
    )
    yield Check("cores", ok=True, detail=f"{usable_cores()} usable, {default_threads()} by default")
    gpus = [
        f"{gpu.name} (sm_{gpu.compute_capability.replace('.', '')}), driver {gpu.driver}, {gpu.uuid}"
        for gpu in visible_gpus()
    ]
    yield Check("cuda devices", ok=True, detail="; ".join(gpus) or "none")
    toolkit = cuda_variables()
    compiler = (
        f"{toolkit['TVM_CUDA_COMPILE_MODE']} of {toolkit['CUDA_PATH']}" if toolkit else "none"
    )
    is_needed = bool(gpus) and not toolkit
    advice = ": install tunegate[nvidia], or a CUDA toolkit" if is_needed else ""
    yield Check("cuda compiler", ok=not is_needed, detail=compiler + advice)
    if gpus:
        told = "told by CUPTI" if permits_kernel_clock({}) else "not told"
        yield Check("times of kernels", ok=True, detail=told)


def check_cache(config: CacheConfig, *, root: Path) -> Check:
    """One listing; the store's own time-outs bound it."""
    if config.mode == "off":
        return Check("cache", ok=True, detail="off")
    try:
        store = open_store(config, root=root)
        found = len(store.names(f"ms1/z/{config.zone}/"))
    except (StoreUnavailableError, ConfigError) as error:
        return Check("cache", ok=False, detail=str(error))
    return Check("cache", ok=True, detail=f"{config.url}: {found} objects in zone {config.zone}")


def _pinned(distribution: str, wanted: str) -> Check:
    try:
        found = version(distribution)
    except PackageNotFoundError:
        detail = f"not installed; run: python -m pip install 'tunegate[tvm]' ({wanted})"
        return Check(distribution, ok=False, detail=detail)
    detail = found if found == wanted else f"{found}, but only {wanted} is known to work"
    return Check(distribution, ok=found == wanted, detail=detail)


def _self_test() -> Check:
    """In a child: a compiler whose parts do not fit ends the process."""
    done = interpreter.ask(_SELF_TEST, variables={}, limit_seconds=_SELF_TEST_SECONDS)
    if done is None:
        return Check("compiler self-test", ok=False, detail=f"hangs ({_SELF_TEST_SECONDS} s)")
    if done.returncode == 0:
        return Check("compiler self-test", ok=True, detail="wrote a database, built a function")
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    return Check("compiler self-test", ok=False, detail=f"exit {done.returncode}: {last[0][:200]}")
