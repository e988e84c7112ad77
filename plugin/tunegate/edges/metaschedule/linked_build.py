"""A scheduled model as the file that is loaded: a library for TVM's virtual machine, with its
kernels or one persistent kernel, or a native object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tvm
from tvm import relax

from tunegate.edges.metaschedule.low_precision.lower_kernels import TileKernels, with_tiles
from tunegate.edges.metaschedule.native.export import export_native
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.passes.default_schedule import (
    with_default_schedule,
    with_packing_schedules,
)
from tunegate.edges.metaschedule.passes.elementary_functions import vectorize_elementary_functions
from tunegate.edges.metaschedule.passes.prepacking import folded
from tunegate.edges.metaschedule.persistent.export import persistent_executable
from tunegate.edges.metaschedule.persistent.ways import Scheduled
from tunegate.edges.native.c_compiler import NO_C_COMPILER, c_compiler
from tunegate.edges.native.native_object import NATIVE_OBJECT
from tunegate.edges.output.artifact_file import ArtifactTensor
from tunegate.engine.compiler_protocol import BuildModel
from tunegate.errors import EnvironmentUnfitError, UnsupportedModelError

LIBRARY = "model.so"


class Finished(NamedTuple):
    """A linked build, and the inputs that it is run on. `plain` is the module without schedules; it
    is `module` where that has none."""

    opened: OpenModel
    module: Any
    plain: Any
    inputs: tuple[ArtifactTensor, ...]
    outputs: tuple[ArtifactTensor, ...]
    lower: TileKernels


def is_native(request: BuildModel) -> bool:
    return request.target.artifact == "native"


def link(finished: Finished, request: BuildModel) -> int:
    """Writes the file into the request's directory, and returns its size in bytes."""
    if is_native(request):
        return _link_native(finished, request)
    if request.is_whole:
        return _link_persistent(finished, request)
    directory = Path(request.directory)
    return link_kernels(finished.opened, finished.module, finished.lower, directory, request)


def link_kernels(
    opened: OpenModel, module: Any, lower: TileKernels, directory: Path, request: BuildModel
) -> int:
    """The library of a module, each kernel a launch. Those for CPUs are compiled once for an open
    model."""
    module = _with_defaults(module, lower, request)
    if str(lower.target.kind.name) != "cuda":
        into = Path(request.scratch) / "kernels"
        tiles = dict.fromkeys(lower.kernels, lower.tiles)
        executable, files = opened.objects.executable(module, lower.target, tiles, into)
        return _exported(executable, directory, files)
    # Without a GPU the pass finds nothing to capture.
    graphs = {"relax.backend.use_cuda_graph": request.cuda_graphs}
    with lower.target, tvm.transform.PassContext(opt_level=3, config=graphs):
        executable = relax.build(module, target=lower.target)
    return _exported(executable, directory)


def _link_native(finished: Finished, request: BuildModel) -> int:
    directory = Path(request.directory)
    if (compiler := c_compiler()) is None:
        raise EnvironmentUnfitError(NO_C_COMPILER)
    module = _with_defaults(finished.module, finished.lower, request)
    try:
        target, whole = finished.lower.tiles or finished.lower.target, request.is_whole
        export_native(module, target, _names(finished), directory, compiler, whole=whole)
    except UnsupportedModelError as error:
        message = f"{request.model.path}: {error}. Write artifact: runtime."
        raise UnsupportedModelError(message) from error
    return (directory / NATIVE_OBJECT).stat().st_size


def _link_persistent(finished: Finished, request: BuildModel) -> int:
    with finished.lower.target, tvm.transform.PassContext(opt_level=3):
        recorded = folded(finished.module)
        is_plain = finished.plain is finished.module
        plain = recorded if is_plain else folded(finished.plain)
    model, target = Scheduled(recorded, plain), finished.lower.target
    scratch = Path(request.scratch)
    executable = persistent_executable(model, _names(finished), target, scratch)
    return _exported(executable, Path(request.directory))


def _names(finished: Finished) -> tuple[list[str], list[str]]:
    return [each.name for each in finished.inputs], [each.name for each in finished.outputs]


def _with_defaults(module: Any, lower: TileKernels, request: BuildModel) -> Any:
    vectorize_elementary_functions()
    with lower.target, tvm.transform.PassContext(opt_level=3):
        if not request.keeps_constants:
            module = with_packing_schedules(module, lower.target, lower.kernels)
        return with_default_schedule(with_tiles(folded(module), lower.kernels), lower.target)


def _exported(executable: Any, directory: Path, files: Sequence[Path] = ()) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    executable.export_library(str(library), addons=[str(each) for each in files])
    return library.stat().st_size
