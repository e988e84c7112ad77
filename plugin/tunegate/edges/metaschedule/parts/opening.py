"""A model's file, opened for the compiler: whole where it can take it, else in parts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.open_model import OpenModel, open_model
from tunegate.edges.metaschedule.parts.open_parts import SplitModel, split_model
from tunegate.edges.metaschedule.passes.layout import layouts
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.models.preparation import prepare
from tunegate.engine.protocol import ModelFile
from tunegate.errors import UnsupportedModelError

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
    opened = partial(
        open_model,
        target=tvm_target(target).target,
        path=model.path,
        layouts=layouts(target),
    )
    try:
        return opened(prepared)
    except UnsupportedModelError as error:
        if not in_parts or target.kind != "llvm":
            raise
        return split_model(prepared, opened, into / "parts", str(error))
