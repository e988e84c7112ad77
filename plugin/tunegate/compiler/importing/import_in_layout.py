"""A prepared model as a module that the compiler can build, in the first layout where it can.

Every process that opens a model decides alike: by the model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tunegate.compiler.importing.buildable import unbuildable
from tunegate.compiler.importing.import_onnx import ImportedModel, fused, import_operators
from tunegate.compiler.layouts.layout import Layout
from tunegate.errors import UnsupportedModelError
from tunegate.models.prepared import PreparedModel
from tunegate.system.processes.memory_limit import memory_problem


def import_in_layout(
    prepared: PreparedModel, target: Any, path: str, layouts: Sequence[Layout]
) -> Any:
    """Returns the fused module. Raises UnsupportedModelError with what the first layout lacks, and
    at once where memory is what is missing: the other side might have had it."""
    model = import_operators(prepared, path)
    problems: list[UnsupportedModelError] = []
    for layout in layouts:
        try:
            return _fused(model, target, layout)
        except UnsupportedModelError as error:
            if error.__cause__ is not None and memory_problem(error.__cause__):
                raise
            problems.append(error)
    raise problems[0]


def _fused(model: ImportedModel, target: Any, layout: Layout) -> Any:
    module = fused(model, target, channels_last=layout == "nhwc")
    problem = unbuildable(module, target)
    if problem:
        raise UnsupportedModelError(f"{model.path}: {problem}.")
    return module
