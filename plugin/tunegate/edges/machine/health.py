"""What must be right on a machine before a run can work, each as a check with its detail."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from tunegate.config import CacheConfig, Config
from tunegate.edges.cache.shared_cache import location_of, objects_in_zone
from tunegate.edges.machine.cores import default_threads, usable_cores
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.edges.nvidia.cuda_toolkit import cuda_variables
from tunegate.edges.nvidia.gpus import visible_gpus
from tunegate.edges.nvidia.kernel_clock import permits_kernel_clock
from tunegate.errors import ConfigError
from tunegate.plurals import plural
from tunegate_cache.stores.store import StoreUnavailableError


def machine_checks(config: Config | None = None) -> Iterator[HealthCheck]:
    """Yields the versions of what every run needs, and the devices that this configuration has;
    without one, all."""
    yield HealthCheck("python", ok=True, detail=platform.python_version())
    yield HealthCheck("onnx", ok=True, detail=version("onnx"))
    threads = plural(default_threads(), "thread")
    told = f"{usable_cores()} usable; a target takes {threads} by default, all but one core"
    yield HealthCheck("cores", ok=True, detail=told)
    if config is None or any(target.kind == "cuda" for target in config.targets):
        yield from _gpu_checks()


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
        told = "told by CUPTI" if permits_kernel_clock({}) else "not told"
        yield HealthCheck("times of kernels", ok=True, detail=told)


def check_cache(config: CacheConfig, *, root: Path) -> HealthCheck:
    """One listing; the store's own time-outs bound it."""
    if config.mode == "off":
        return HealthCheck("cache", ok=True, detail="off")
    try:
        where = location_of(config, root=root)
        found = objects_in_zone(config, root=root)
    except (StoreUnavailableError, ConfigError) as error:
        return HealthCheck("cache", ok=False, detail=str(error))
    return HealthCheck("cache", ok=True, detail=_held(where, found, config.zone))


def _held(where: str, objects: int, zone: str) -> str:
    if not objects:
        return f"{where}: nothing in zone {zone} yet; tunegate warm fills it"
    return f"{where}: {plural(objects, 'object')} in zone {zone}"
