"""A model's file, opened for the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tunegate.compiler.build.functions import functions_of, layer_names
from tunegate.compiler.build.open_model import OpenModel
from tunegate.compiler.importing.import_in_layout import import_in_layout
from tunegate.compiler.layouts.layout import Layout, layouts
from tunegate.compiler.schedules.asked_algorithm import with_algorithm
from tunegate.compiler.targets import tvm_target
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.system.processes.memory_limit import memory_problem
from tunegate.tune.protocol import ModelFile

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
