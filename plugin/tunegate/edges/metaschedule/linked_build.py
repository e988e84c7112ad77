"""A scheduled model as the file that is loaded: a library for TVM's virtual machine, or what a form
makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tvm
from tvm import relax

from tunegate.edges.metaschedule.forms import LIBRARY, form_for
from tunegate.edges.metaschedule.low_precision.lower_kernels import TileKernels, with_tiles
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.passes.default_schedule import (
    with_default_schedule,
    with_packing_schedules,
)
from tunegate.edges.metaschedule.passes.elementary_functions import vectorize_elementary_functions
from tunegate.edges.metaschedule.passes.prepacking import folded
from tunegate.edges.output.artifact_file import ArtifactTensor
from tunegate.engine.compiler_protocol import BuildModel


class Finished(NamedTuple):
    """A linked build, and the inputs that it is run on. `plain` is the module without schedules; it
    is `module` where that has none."""

    opened: OpenModel
    module: Any
    plain: Any
    inputs: tuple[ArtifactTensor, ...]
    outputs: tuple[ArtifactTensor, ...]
    lower: TileKernels

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Those of the inputs and of the outputs."""
        return [each.name for each in self.inputs], [each.name for each in self.outputs]


def link(finished: Finished, request: BuildModel) -> int:
    """Writes the file into the request's directory, and returns its size in bytes."""
    form = form_for(request.target, request.settings)
    if form is not None:
        return form.link(finished, request)
    directory = Path(request.directory)
    return link_kernels(finished.opened, finished.module, finished.lower, directory, request)


def link_kernels(
    opened: OpenModel, module: Any, lower: TileKernels, directory: Path, request: BuildModel
) -> int:
    """The library of a module, each kernel a launch. Those for CPUs are compiled once for an open
    model."""
    module = with_defaults(module, lower, request)
    if str(lower.target.kind.name) != "cuda":
        into = Path(request.scratch) / "kernels"
        tiles = dict.fromkeys(lower.kernels, lower.tiles)
        executable, files = opened.objects.executable(module, lower.target, tiles, into)
        return exported(executable, directory, files)
    # Without a GPU the pass finds nothing to capture.
    graphs = {"relax.backend.use_cuda_graph": request.cuda_graphs}
    with lower.target, tvm.transform.PassContext(opt_level=3, config=graphs):
        executable = relax.build(module, target=lower.target)
    return exported(executable, directory)


def with_defaults(module: Any, lower: TileKernels, request: BuildModel) -> Any:
    """Returns the module with default schedules for all kernels that have none."""
    vectorize_elementary_functions()
    with lower.target, tvm.transform.PassContext(opt_level=3):
        if not request.keeps_constants:
            module = with_packing_schedules(module, lower.target, lower.kernels)
        return with_default_schedule(with_tiles(folded(module), lower.kernels), lower.target)


def exported(executable: Any, directory: Path, files: Sequence[Path] = ()) -> int:
    """Writes a library with these files in it, and returns its size in bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    executable.export_library(str(library), addons=[str(each) for each in files])
    return library.stat().st_size
