"""A prepared model, opened for the compiler: its module and the kernels in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tunegate.edges.metaschedule.functions import ModelFunction, functions_of, layer_names
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.passes.layout import Layout
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.errors import UnsupportedModelError


class OpenModel(NamedTuple):
    """What listing the tasks and building have in common."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]


def open_model(
    prepared: PreparedModel, target: Any, path: str, *, layouts: Sequence[Layout]
) -> OpenModel:
    """Raises UnsupportedModelError where the compiler cannot take it."""
    module = import_in_layout(prepared, target, path, layouts)
    try:
        return OpenModel(prepared, module, functions_of(module, layer_names(prepared.optimized)))
    except Exception as error:
        # A shape that is known only when the model runs is no number: TVM's own errors say so.
        problem = memory_problem(error) or "the compiler needs shapes that do not depend on data"
        raise UnsupportedModelError(f"{path}: {problem}.") from error
