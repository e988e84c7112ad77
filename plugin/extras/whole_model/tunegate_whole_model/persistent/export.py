"""Exports a scheduled model with one persistent kernel, for TVM's virtual machine."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import tvm

from tunegate.compiler.build.build_model import Finished, export_library
from tunegate.compiler.forms import Linked
from tunegate.compiler.layouts.packing import fold_packing
from tunegate.compiler.loader import device_exists
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.tune.compiler_protocol import BuildModel
from tunegate_whole_model.native.straight_code import SYMBOL
from tunegate_whole_model.persistent.chosen_kernel import ChosenKernel, chosen_kernel
from tunegate_whole_model.persistent.device_timer import DeviceTimer
from tunegate_whole_model.persistent.launching_module import (
    WHOLE_KERNEL,
    device_module,
    executable,
)
from tunegate_whole_model.persistent.nvrtc import has_nvrtc, machine_code
from tunegate_whole_model.persistent.ways import (
    NOTHING_DECIDED,
    Decided,
    Names,
    Scheduled,
    mark_of_context,
    whole_model,
)


def link_persistent(finished: Finished, request: BuildModel) -> Linked:
    """Writes a library with one kernel into the request's directory. Raises NotOfferedError."""
    with finished.lower.target, tvm.transform.PassContext(opt_level=3):
        recorded = fold_packing(finished.module)
        is_plain = finished.plain is finished.module
        plain = recorded if is_plain else fold_packing(finished.plain)
    model, target = Scheduled(recorded, plain), finished.lower.target
    decided = Decided(
        frozenset(request.how.kept if request.how is not None else request.decided),
        {SYMBOL.format(f.name): f.workload.digest for f in finished.opened.functions},
    )
    made = persistent_kernel(model, finished.names, target, Path(request.scratch), decided)
    pointers = len(made.program.inputs) + len(made.program.outputs) + 2
    cubin = made.compiled.cubin
    kernel = device_module(made.text, cubin, [WHOLE_KERNEL], pointers, target)
    library = executable(made.program, made.stages.arena_bytes, made.context, kernel, target)
    marks = [decided.mark_of_way(*pick) for pick in made.picks.items()]
    return Linked(
        export_library(library, Path(request.directory)), (*marks, mark_of_context(made.context))
    )


def persistent_kernel(
    model: Scheduled,
    names: Names,
    target: Any,
    scratch: Path,
    decided: Decided = NOTHING_DECIDED,
) -> ChosenKernel:
    """Returns the fastest kernel on this machine's device, if there is one. `scratch` is a private
    directory."""
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
            decided,
        )
    except UnsupportedModelError as error:
        raise NotOfferedError(str(error)) from error
    finally:
        if timer is not None:
            timer.close()
