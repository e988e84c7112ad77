"""A scheduled model as what TVM's virtual machine runs, with one persistent kernel."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from tunegate.edges.metaschedule.loader import device_exists
from tunegate.edges.metaschedule.persistent.chosen_kernel import ChosenKernel, chosen_kernel
from tunegate.edges.metaschedule.persistent.device_timer import DeviceTimer
from tunegate.edges.metaschedule.persistent.launching_module import (
    WHOLE_KERNEL,
    device_module,
    executable,
)
from tunegate.edges.metaschedule.persistent.ways import Names, Scheduled, whole_model
from tunegate.edges.nvidia.cuda_toolkit import cuda_variables
from tunegate.edges.nvidia.nvrtc import has_nvrtc, machine_code
from tunegate.errors import NotOfferedError, UnsupportedModelError


def persistent_executable(model: Scheduled, names: Names, target: Any, scratch: Path) -> Any:
    """Raises NotOfferedError with the reason where there is none."""
    made = persistent_kernel(model, names, target, scratch)
    pointers = len(made.program.inputs) + len(made.program.outputs) + 2
    cubin = made.compiled.cubin
    kernel = device_module(made.text, cubin, [WHOLE_KERNEL], pointers, target)
    return executable(made.program, made.stages.arena_bytes, made.context, kernel, target)


def persistent_kernel(model: Scheduled, names: Names, target: Any, scratch: Path) -> ChosenKernel:
    """The kernel that is the fastest on the device of this machine, if there is one. `scratch` is a
    private directory."""
    toolkit = cuda_variables()
    if not has_nvrtc(toolkit):
        raise NotOfferedError("one launch is compiled by NVRTC: pip install 'tunegate[nvidia]'")
    timer = DeviceTimer(target, scratch, toolkit) if device_exists("cuda") else None
    arch = str(target.attrs["arch"])
    try:
        return chosen_kernel(
            cache(partial(whole_model, model, names, target)),
            arch,
            partial(machine_code, arch=arch, toolkit=toolkit),
            timer,
        )
    except UnsupportedModelError as error:
        raise NotOfferedError(str(error)) from error
    finally:
        if timer is not None:
            timer.close()
