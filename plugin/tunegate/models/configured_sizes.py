"""The sizes of each configured model of the working tree, and what is left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tunegate.config import Config
from tunegate.models.finder import FoundModel
from tunegate.review.input_shapes import ResolvedShapes
from tunegate.review.model_settings import profiles_for, shapes_for
from tunegate.review.size_problems import stray_symbols
from tunegate.system.machine.health_check import HealthCheck


class ModelSize(msgspec.Struct, frozen=True, kw_only=True):
    """An open dimension of a model, in one of its profiles. `size` is None where it is left open,
    `source` the key of the configuration that says it."""

    model: str
    input: str
    axis: int
    symbol: str
    size: int | None
    source: str


class ShapeReport(msgspec.Struct, frozen=True):
    """Every dynamic dimension, and whether all is well with them and with the models."""

    sizes: tuple[ModelSize, ...]
    checks: tuple[HealthCheck, ...]


def shape_report(models: Sequence[FoundModel], config: Config) -> ShapeReport:
    """The report of these models of the working tree, which the configuration gates."""
    resolved = {
        name: shapes_for(config, name, model.inputs)
        for model in models
        for name in profiles_for(config, model.path)
    }
    strays = stray_symbols(config, {model.path: model.inputs for model in models})
    problems = [f"{name}: {each}" for name, found in resolved.items() for each in found.problems]
    return ShapeReport(_sizes(resolved), _checks([*strays, *problems], models))


def _sizes(resolved: Mapping[str, ResolvedShapes]) -> tuple[ModelSize, ...]:
    return tuple(
        ModelSize(
            model=name,
            input=each.input,
            axis=each.axis,
            symbol=each.symbol,
            size=each.size,
            source=each.source,
        )
        for name, found in resolved.items()
        for each in found.dimensions
    )


def _checks(problems: Sequence[str], models: Sequence[FoundModel]) -> tuple[HealthCheck, ...]:
    broken = tuple(
        HealthCheck("models", ok=False, detail=f"{model.path}: {model.note}. Export it again.")
        for model in models
        if model.is_broken
    )
    if problems:
        return (*broken, *(HealthCheck("shapes", ok=False, detail=each) for each in problems))
    unread = [
        f"{model.path}: {model.note}" for model in models if model.note and not model.is_broken
    ]
    detail = "; ".join(unread) or "every dynamic dimension has a size"
    return (*broken, HealthCheck("shapes", ok=True, detail=detail))
