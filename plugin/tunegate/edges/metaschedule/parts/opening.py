"""A model's file, opened for the compiler: whole where it can take it, else in parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tunegate.config import AUTO, TargetConfig
from tunegate.edges.metaschedule.functions import functions_of, layer_names
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.parts.open_parts import (
    SplitModel,
    opener_of,
    slower_whole,
    split_as,
    split_model,
)
from tunegate.edges.metaschedule.parts.part_opener import OpenPart
from tunegate.edges.metaschedule.passes.asked_algorithm import with_algorithm
from tunegate.edges.metaschedule.passes.layout import Layout, layouts
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.models.preparation import prepare
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.engine.protocol import ModelFile
from tunegate.errors import UnsupportedModelError
from tunegate_cache.format.how_built import HowBuilt

OpenedModel = OpenModel | SplitModel


def opened_model(
    model: ModelFile,
    target: TargetConfig,
    into: Path,
    *,
    in_parts: bool,
) -> OpenedModel:
    """Raises ModelError for a file that is no model, and UnsupportedModelError where it cannot be
    compiled, or `in_parts` where no part of it is worth that."""
    prepared = prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    opened = _opening(model, target)
    try:
        return opened(prepared)
    except UnsupportedModelError as error:
        if not in_parts or target.kind != "llvm":
            raise
        return split_model(prepared, opened, into / "parts", str(error))


def cut_open(whole: OpenModel, model: ModelFile, target: TargetConfig, into: Path) -> SplitModel:
    """Returns a model that is slower compiled whole, to be cut. Raises UnsupportedModelError where
    it cannot be."""
    return slower_whole(whole, _opening(model, target), into / "parts")


def opened_as(
    model: ModelFile,
    target: TargetConfig,
    into: Path,
    how: HowBuilt,
    known: OpenedModel | None,
) -> SplitModel:
    """Returns a model cut as it was before; `known` is the same model where it is open already.
    Raises UnsupportedModelError where it cannot be cut so."""
    if isinstance(known, SplitModel):
        return split_as(known.opener, known.prepared, how)
    prepared = (
        known.prepared
        if known is not None
        else prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    )
    opener = opener_of(prepared, _opening(model, target), into / "parts")
    return split_as(opener, prepared, how)


def _opening(model: ModelFile, target: TargetConfig) -> OpenPart:
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
