"""Which files the configuration means, and what it asks of each."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tunegate.artifacts.changes import Revisions
from tunegate.config import Config, InputConfig, Inputs, ModelConfig, ValuesConfig
from tunegate.globs import matches

WILDCARDS = frozenset("*?[")


class Needs(msgspec.Struct, frozen=True):
    """What the configuration asks of one model: when this changes, the model is checked again."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    targets: tuple[tuple[str | int, ...], ...]


def entry_for(config: Config, path: str) -> ModelConfig | None:
    """The first entry of `models` whose glob matches."""
    return _entries(_Same(config.models)).first(path)


def shapes_for(config: Config, path: str) -> dict[str, tuple[int, ...]]:
    """The shapes that are given for inputs of a model."""
    entry = entry_for(config, path)
    return {} if entry is None else shapes_of(entry.inputs)


def shapes_of(inputs: Inputs) -> dict[str, tuple[int, ...]]:
    """The inputs that have a shape."""
    shapes = {
        name: given.shape if isinstance(given, InputConfig) else given
        for name, given in inputs.items()
    }
    return {name: shape for name, shape in shapes.items() if shape is not None}


def values_of(inputs: Inputs) -> dict[str, ValuesConfig]:
    """The inputs that have values."""
    return {
        name: given.values
        for name, given in inputs.items()
        if isinstance(given, InputConfig) and given.values is not None
    }


def targets_for(config: Config, path: str) -> tuple[str, ...]:
    """Names of the targets of a model: its own list, else every target."""
    entry = entry_for(config, path)
    if entry is None:
        return ()
    return entry.targets or tuple(target.name for target in config.targets)


def needs_of(config: Config, path: str) -> Needs | None:
    """The needs of a model, or None where the configuration does not name it."""
    if entry_for(config, path) is None:
        return None
    wanted = set(targets_for(config, path))
    return Needs(
        shapes=tuple(sorted(shapes_for(config, path).items())),
        targets=tuple(
            (t.name, t.kind, t.cpu, t.arch, t.threads, t.layout, t.runtime, t.cuda_graphs)
            for t in config.targets
            if t.name in wanted
        ),
    )


def judged_as(config: Config, revisions: Revisions) -> Config:
    """The configuration with the margin that these revisions have: many small slowdowns
    since a release have their own."""
    if not revisions.release:
        return config
    gate = config.gate
    wider = msgspec.structs.replace(gate, margin_percent=gate.release_margin_percent)
    return msgspec.structs.replace(config, gate=wider)


def selected(config: Config, paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that some entry matches, in order."""
    return tuple(sorted(path for path in paths if entry_for(config, path) is not None))


class _Same:
    """Entries that equal only themselves: what is known of them is found again
    without trying all of them."""

    def __init__(self, models: tuple[ModelConfig, ...]) -> None:
        self.models = models

    def __hash__(self) -> int:
        return id(self.models)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.models is self.models


class _Entries:
    """Entries for one path are found by that path: a change may have one for each of its models."""

    def __init__(self, models: tuple[ModelConfig, ...]) -> None:
        self._models = models
        paths = [entry.path.removeprefix("./") for entry in models]
        self._exact: dict[str, int] = {}
        self._globs = [at for at, path in enumerate(paths) if WILDCARDS & {*path}]
        for at, path in enumerate(paths):
            if not WILDCARDS & {*path}:
                self._exact.setdefault(path, at)

    def first(self, path: str) -> ModelConfig | None:
        last = self._exact.get(path, len(self._models))
        found = (at for at in self._globs if at > last or matches(self._models[at].path, path))
        at = min(next(found, last), last)
        return self._models[at] if at < len(self._models) else None


@lru_cache(maxsize=8)
def _entries(same: _Same) -> _Entries:
    return _Entries(same.models)
