"""Waivers that can waive nothing, because no configured model or target has their name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.model_names import path_of, without_upgrade
from tunegate.artifacts.waivers import Waiver
from tunegate.config import Config
from tunegate.selection import targets_for
from tunegate.wording.did_you_mean import did_you_mean


def stray_waivers(
    waivers: Iterable[Waiver], config: Config, models: Iterable[ModelPath]
) -> Iterator[str]:
    """Yields a line for each waiver that is about none of the models, or about no target of its
    model. A model's path stands for all of its profiles."""
    names = {without_upgrade(name) for name in models}
    known = names | {path_of(name) for name in names}
    for cell in dict.fromkeys(waiver.cell for waiver in waivers):
        problem = _problem(cell, config, known)
        if problem:
            yield f"the waiver of {cell.model} on {cell.target} waives nothing: {problem}"


def _problem(cell: Cell, config: Config, known: Collection[ModelPath]) -> str:
    model = without_upgrade(cell.model)
    if model not in known:
        return f"no configured model has this name.{_nearest(model, known)}"
    targets = targets_for(config, path_of(model))
    if targets and cell.target not in targets:
        return f"the model has no target {cell.target}.{_nearest(cell.target, targets)}"
    return ""


def _nearest(word: str, known: Collection[str]) -> str:
    names = sorted(known)
    listed = f"Known: {', '.join(names[:5])}."
    return f" {did_you_mean(word, names, listed)}"
