"""A model's file, opened for the compiler: whole where it can take it, else in parts."""

from __future__ import annotations

from pathlib import Path

from tunegate.compiler.opening import OpenModel, opening
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.tune.protocol import ModelFile
from tunegate_cache.format.how_built import HowBuilt
from tunegate_hybrid.open_parts import (
    SplitModel,
    opener_of,
    slower_whole,
    split_as,
    split_model,
)

OpenedModel = OpenModel | SplitModel


def opened_in_parts(model: ModelFile, target: TargetConfig, into: Path) -> OpenedModel:
    """Raises ModelError for a file that is no model, and UnsupportedModelError where no part of it
    is worth compiling."""
    prepared = prepare(Path(model.file), shapes=model.shapes, into=into, path=model.path)
    opened = opening(model, target)
    try:
        return opened(prepared)
    except UnsupportedModelError as error:
        if target.kind != "llvm":
            raise
        return split_model(prepared, opened, into / "parts", str(error))


def cut_open(whole: OpenModel, model: ModelFile, target: TargetConfig, into: Path) -> SplitModel:
    """Returns a model that is slower compiled whole, to be cut. Raises UnsupportedModelError where
    it cannot be."""
    return slower_whole(whole, opening(model, target), into / "parts")


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
    return split_as(opener_of(prepared, opening(model, target), into / "parts"), prepared, how)
