"""Requirements on a machine, each as a check with its detail."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from tunegate.config import CacheConfig, Config
from tunegate.errors import ConfigError
from tunegate.system.cache.shared_cache import location_of, objects_in_zone
from tunegate.system.machine.cores import default_threads, usable_cores
from tunegate.system.machine.health_check import HealthCheck, in_section
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.nvidia.kernel_clock import why_no_kernel_clock
from tunegate.wording import plural
from tunegate_cache.stores.store import StoreUnavailableError


def machine_checks(config: Config | None = None) -> tuple[HealthCheck, ...]:
    """Returns checks of the versions that every run needs, of the load, and of this configuration's
    devices; without a configuration of all devices."""
    return in_section(_machine_checks(config), "machine")


def _machine_checks(config: Config | None) -> Iterator[HealthCheck]:
    yield HealthCheck("python", ok=True, detail=platform.python_version())
    yield HealthCheck("onnx", ok=True, detail=version("onnx"))
    threads = plural(default_threads(), "thread")
    told = f"{usable_cores()} usable; a target takes {threads} by default, all but one core"
    yield HealthCheck("cores", ok=True, detail=told)
    yield load_check(os.getloadavg()[0], machine=os.cpu_count() or 1, usable=usable_cores())
    if config is None or any(target.kind == "cuda" for target in config.targets):
        yield from _gpu_checks()


def load_check(load: float, *, machine: int, usable: int) -> HealthCheck:
    """Returns the check that other work leaves a target its threads. `load` is the last minute's
    average; `machine` and `usable` are numbers of cores."""
    free = max(0.0, min(usable, machine - load))
    told = f"{load:.1f} on {plural(machine, 'core')}, {free:.1f} free"
    if free >= max(0.5, usable - 1):
        return HealthCheck("load", ok=True, detail=told)
    advice = (
        "each step takes longer, and the gate decides later or not at all. "
        "End what else runs here (top lists it), or take a quieter runner"
    )
    return HealthCheck("load", ok=True, detail=f"{told}: {advice}", warns=True)


def _gpu_checks() -> Iterator[HealthCheck]:
    gpus = [
        f"{gpu.name} (sm_{gpu.compute_capability.replace('.', '')}), "
        f"driver {gpu.driver}, {gpu.uuid}"
        for gpu in visible_gpus()
    ]
    yield HealthCheck("cuda devices", ok=True, detail="; ".join(gpus) or "none")
    toolkit = cuda_variables()
    compiler = (
        f"{toolkit['TVM_CUDA_COMPILE_MODE']} of {toolkit['CUDA_PATH']}" if toolkit else "none"
    )
    is_needed = bool(gpus) and not toolkit
    advice = ": install tunegate[nvidia], or a CUDA toolkit" if is_needed else ""
    yield HealthCheck("cuda compiler", ok=not is_needed, detail=compiler + advice)
    if gpus:
        reason = why_no_kernel_clock({})
        told = f"not told: {reason}" if reason else "told by CUPTI"
        yield HealthCheck("times of kernels", ok=True, detail=told)


def check_cache(config: CacheConfig, *, root: Path, is_compiled: bool = True) -> HealthCheck:
    """Checks the cache by one listing, bounded by the store's own time-outs. If nothing
    `is_compiled`, nothing fills it."""
    if config.mode == "off":
        return _cache("off")
    try:
        where = location_of(config, root=root)
        found = objects_in_zone(config, root=root)
    except (StoreUnavailableError, ConfigError) as error:
        return _cache(str(error), ok=False)
    return _cache(_objects_text(where, found, config.zone, is_compiled=is_compiled))


def _cache(detail: str, *, ok: bool = True) -> HealthCheck:
    return HealthCheck("cache", ok=ok, detail=detail, section="cache")


def _objects_text(where: str, objects: int, zone: str, *, is_compiled: bool) -> str:
    if not objects:
        fills = "tunegate warm fills it" if is_compiled else "no target compiles anything"
        return f"{where}: nothing in zone {zone} yet; {fills}"
    return f"{where}: {plural(objects, 'object')} in zone {zone}"
