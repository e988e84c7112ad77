"""The models that a configuration gates: where they stand, and what the cache knows of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from tunegate.artifacts.model_names import path_of
from tunegate.artifacts.warmed import WarmedModel
from tunegate.config import Config
from tunegate.edges.models.finder import FoundModel
from tunegate.plurals import plural
from tunegate.selection import entry_for, profiles_for, targets_for

COMMITTED = "committed"


class GatedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the working tree, in one of its profiles. `entry` is the path or glob that gates
    it, `tasks` what the cache knows of it, `trouble` why nobody could look into it."""

    model: str
    entry: str
    targets: tuple[str, ...]
    state: str
    tasks: tuple[WarmedModel, ...] = ()
    trouble: str = ""


def gated_models(
    config: Config, models: Sequence[FoundModel], uncommitted: Collection[str]
) -> tuple[GatedModel, ...]:
    """Every model, in order; `uncommitted` are the paths with changes."""
    return tuple(
        GatedModel(
            model=name,
            entry=entry.path,
            targets=targets_for(config, model.path),
            state=_state(model, uncommitted),
            trouble=model.note,
        )
        for model in models
        if (entry := entry_for(config, model.path)) is not None
        for name in profiles_for(config, model.path)
    )


def with_tasks(
    models: Sequence[GatedModel], known: Sequence[WarmedModel]
) -> tuple[GatedModel, ...]:
    """The models, with what the cache knows of each."""
    return tuple(
        msgspec.structs.replace(
            model, tasks=tuple(each for each in known if each.model == model.model)
        )
        for model in models
    )


def left_to_do(models: Sequence[GatedModel]) -> Iterator[str]:
    """Sentences on what to do next."""
    new = {path_of(model.model) for model in models if model.state != COMMITTED}
    if new:
        yield f"{plural(len(new), 'model')} not committed as here: tunegate sees commits alone"
    left = sum(each.tasks - each.known for model in models for each in model.tasks)
    if left:
        yield f"{plural(left, 'task is', 'tasks are')} untuned: tunegate warm tunes what matters"


def _state(model: FoundModel, uncommitted: Collection[str]) -> str:
    if not model.is_committed:
        return "not committed yet"
    return "changed since the commit" if model.path in uncommitted else COMMITTED
