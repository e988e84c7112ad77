"""A scheduled model as what TVM's virtual machine runs, with one persistent kernel."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import tvm

from tunegate.compiler.build.build_model import Finished, exported
from tunegate.compiler.layouts.packing import folded
from tunegate.compiler.loader import device_exists
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.tune.compiler_protocol import BuildModel
from tunegate_whole_model.persistent.chosen_kernel import ChosenKernel, chosen_kernel
from tunegate_whole_model.persistent.device_timer import DeviceTimer
from tunegate_whole_model.persistent.launching_module import (
    WHOLE_KERNEL,
    device_module,
    executable,
)
from tunegate_whole_model.persistent.nvrtc import has_nvrtc, machine_code
from tunegate_whole_model.persistent.ways import Names, Scheduled, whole_model


def link_persistent(finished: Finished, request: BuildModel) -> int:
    """Writes a library with one kernel into the request's directory, and returns its size in bytes.
    Raises NotOfferedError."""
    with finished.lower.target, tvm.transform.PassContext(opt_level=3):
        recorded = folded(finished.module)
        is_plain = finished.plain is finished.module
        plain = recorded if is_plain else folded(finished.plain)
    model, target = Scheduled(recorded, plain), finished.lower.target
    scratch = Path(request.scratch)
    executable = persistent_executable(model, finished.names, target, scratch)
    return exported(executable, Path(request.directory))


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
