"""Problems of the sizes that a new configuration gives, for all of its models at once.

A size that it does not give concerns its model alone, whose finding says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from tunegate.artifacts.changes import ModelInput, ModelPath, ModelVersion
from tunegate.config import Config, ModelConfig
from tunegate.ports import ModelReader
from tunegate.review.input_shapes import symbols_of
from tunegate.review.model_settings import entry_for, profiles_for, selected, shapes_for
from tunegate.wording import did_you_mean

_Inputs = Mapping[ModelPath, Sequence[ModelInput] | None]


def shape_problems(
    reader: ModelReader,
    config: Config,
    old_config: Config | None,
    found: Mapping[ModelPath, ModelVersion],
) -> tuple[str, ...]:
    """Returns a line for each problem of the models `found` in the head. Nobody looks into models
    where the base's configuration says the same; those that cannot be read have no problem."""
    if old_config is not None and _said(old_config) == _said(config):
        return ()
    inputs = {path: _inputs(reader, found[path]) for path in selected(config, found)}
    return (*stray_symbols(config, inputs), *_of_models(config, inputs))


def stray_symbols(config: Config, inputs: _Inputs) -> Iterator[str]:
    """The symbols that no model has. `inputs` are those of all models, None where one cannot be
    read: what it has is not known."""
    yield from _strays("dims", config.dims, inputs.values())
    for entry in config.models:
        own = [has for path, has in inputs.items() if entry_for(config, path) is entry]
        for where, dims in _dims_of(entry):
            yield from _strays(where, dims, own)


def _dims_of(entry: ModelConfig) -> Iterator[tuple[str, Mapping[str, int]]]:
    yield f"models: {entry.path}: dims", entry.dims
    for name, profile in entry.profiles.items():
        yield f"models: {entry.path}: profiles.{name}.dims", profile.dims


def _strays(
    where: str, dims: Mapping[str, int], models: Iterable[Sequence[ModelInput] | None]
) -> Iterator[str]:
    if not dims:
        return
    read = [*models]
    known = sorted({*chain.from_iterable(symbols_of(inputs) for inputs in read if inputs)})
    if not read or None in read:
        return
    for symbol in dims:
        if symbol not in known:
            hint = did_you_mean(symbol, known, "Remove it.")
            yield f"{where}.{symbol}: no dynamic dimension of these models has this name. {hint}"


def _of_models(config: Config, inputs: _Inputs) -> Iterator[str]:
    for path, has in inputs.items():
        for name in profiles_for(config, path):
            for problem in shapes_for(config, name, has).mistakes:
                yield f"{name}: {problem}"


def _inputs(reader: ModelReader, version: ModelVersion) -> Sequence[ModelInput] | None:
    outline = reader.outline(version)
    return None if outline is None else outline.inputs


def _said(config: Config) -> tuple[object, ...]:
    entries = [(each.path, each.dims, each.inputs, each.profiles) for each in config.models]
    return config.dims, entries
