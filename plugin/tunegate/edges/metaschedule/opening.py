"""A model's file, opened for the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tunegate.config import AUTO, TargetConfig
from tunegate.edges.metaschedule.functions import functions_of, layer_names
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.passes.asked_algorithm import with_algorithm
from tunegate.edges.metaschedule.passes.layout import Layout, layouts
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.models.preparation import prepare
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.engine.protocol import ModelFile
from tunegate.errors import UnsupportedModelError

OpenPrepared = Callable[[PreparedModel], OpenModel]
"""Opens a model for one target. Raises UnsupportedModelError where the compiler does not take
it."""


def opened_model(model: ModelFile, target: TargetConfig, into: Path) -> OpenModel:
    """Raises ModelError for a file that is no model, and UnsupportedModelError where it cannot be
    compiled."""
    prepared = prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    return opening(model, target)(prepared)


def opening(model: ModelFile, target: TargetConfig) -> OpenPrepared:
    """Returns what opens this model, or a part of it, for the target."""
    return partial(
        open_model,
        target=tvm_target(target).target,
        path=model.path,
        layouts=layouts(target),
        algorithm=target.algorithm,
    )


def open_model(
    prepared: PreparedModel,
    target: Any,
    path: str,
    *,
    layouts: Sequence[Layout],
    algorithm: str = AUTO,
) -> OpenModel:
    """Raises UnsupportedModelError where the compiler cannot take it."""
    module = with_algorithm(import_in_layout(prepared, target, path, layouts), algorithm)
    try:
        return OpenModel(prepared, module, functions_of(module, layer_names(prepared.optimized)))
    except Exception as error:
        # A shape that is known only when the model runs is no number: TVM's own errors say so.
        problem = memory_problem(error) or "the compiler needs shapes that do not depend on data"
        raise UnsupportedModelError(f"{path}: {problem}.") from error
