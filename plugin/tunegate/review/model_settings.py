"""The models that the configuration selects, and the settings of each."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice

import msgspec

from tunegate.artifacts import changes
from tunegate.config import Accuracy, Config, InputConfig, Inputs, ModelConfig, ValuesConfig
from tunegate.ports import ModelReader
from tunegate.review.globs import NumberedPath, is_glob, matches, numbered_path
from tunegate.review.input_shapes import ResolvedShapes, ShapeLevel, resolve_shapes, symbols_of
from tunegate.wording import did_you_mean


class Needs(msgspec.Struct, frozen=True):
    """The configuration of one model. If it changes, the model is checked again. `levels` holds its
    shape settings as written; `accuracy` decides what may ship."""

    levels: tuple[ShapeLevel, ...]
    values: dict[str, ValuesConfig]
    targets: tuple[tuple[str | int, ...], ...]
    accuracy: Accuracy


def entry_for(config: Config, path: str) -> ModelConfig | None:
    """Returns the first entry of `models` whose glob matches the path; the path may have a
    profile."""
    return _entries(_Same(config.models)).first_match(changes.path_of(path))


def numbered_for(config: Config, path: changes.ModelPath) -> NumberedPath | None:
    """Returns the version of a model, if its entry's glob has `{version}`."""
    entry = entry_for(config, path)
    return numbered_path(entry.path, path) if entry is not None else None


def profiles_for(config: Config, path: changes.ModelPath) -> tuple[changes.ModelPath, ...]:
    """Returns the names under which a model is gated: one for each profile."""
    entry = entry_for(config, path)
    profiles = entry.profiles if entry is not None and entry.profiles else ("",)
    return tuple(changes.gated_name(path, profile) for profile in profiles)


def shape_levels(config: Config, name: changes.ModelPath) -> tuple[ShapeLevel, ...]:
    """Returns the levels of a model's shapes: the whole file, its entry, its profile. The last one
    is the strongest."""
    entry = entry_for(config, name)
    return () if entry is None else entry_levels(config, entry, changes.profile_of(name))


def entry_levels(config: Config, entry: ModelConfig, profile: str) -> tuple[ShapeLevel, ...]:
    """Returns the levels of one profile of an entry, to follow those of the whole file."""
    levels = (
        ShapeLevel(dims=config.dims),
        ShapeLevel(where=entry.path, dims=entry.dims, shapes=shapes_of(entry.inputs)),
    )
    own = entry.profiles.get(profile)
    if own is None:
        return levels
    where = f"{entry.path}.profiles.{profile}"
    return (*levels, ShapeLevel(where=where, dims=own.dims, shapes=shapes_of(own.inputs)))


def shapes_for(
    config: Config, name: changes.ModelPath, inputs: Sequence[changes.ModelInput] | None
) -> ResolvedShapes:
    """Returns the shapes of a model with these inputs."""
    return entry_shapes(shape_levels(config, name), inputs)


def entry_shapes(
    levels: Sequence[ShapeLevel], inputs: Sequence[changes.ModelInput] | None
) -> ResolvedShapes:
    """Returns the shapes by these levels, for an unreadable model only the given ones."""
    if inputs is not None:
        return resolve_shapes(inputs, levels)
    shapes = {name: shape for level in levels for name, shape in level.shapes.items()}
    return ResolvedShapes(shapes=shapes)


def values_for(config: Config, name: changes.ModelPath) -> dict[str, ValuesConfig]:
    """Returns the values given for a model's inputs."""
    entry = entry_for(config, name)
    return {} if entry is None else entry_values(entry, changes.profile_of(name))


def entry_values(entry: ModelConfig, profile: str) -> dict[str, ValuesConfig]:
    """Returns the values that an entry gives, those of the profile first."""
    own = entry.profiles.get(profile)
    return values_of(entry.inputs) | (values_of(own.inputs) if own is not None else {})


def shapes_of(inputs: Inputs) -> dict[str, tuple[int, ...]]:
    """Returns the inputs that have a shape."""
    shapes = {
        name: setting.shape if isinstance(setting, InputConfig) else setting
        for name, setting in inputs.items()
    }
    return {name: shape for name, shape in shapes.items() if shape is not None}


def values_of(inputs: Inputs) -> dict[str, ValuesConfig]:
    """Returns the inputs that have values."""
    return {
        name: setting.values
        for name, setting in inputs.items()
        if isinstance(setting, InputConfig) and setting.values is not None
    }


def targets_for(config: Config, path: str) -> tuple[str, ...]:
    """Returns the names of a model's targets: its own list, else every target."""
    entry = entry_for(config, path)
    if entry is None:
        return ()
    return tuple(dict.fromkeys(entry.targets or (target.name for target in config.targets)))


def needs_of(config: Config, path: str) -> Needs | None:
    """Returns the needs of a model, None if the configuration does not name it."""
    entry = entry_for(config, path)
    if entry is None:
        return None
    names = set(targets_for(config, path))
    return Needs(
        levels=tuple(
            msgspec.structs.replace(level, where="") for level in shape_levels(config, path)
        ),
        values=values_for(config, path),
        targets=tuple(
            (
                t.name,
                t.kind,
                t.cpu,
                t.arch,
                t.threads,
                t.layout,
                t.algorithm,
                t.runtime,
                t.artifact,
                t.cuda_graphs,
            )
            for t in config.targets
            if t.name in names
        ),
        accuracy=entry.accuracy,
    )


def judged_as(config: Config, revisions: changes.Revisions) -> Config:
    """Returns the configuration with the margin of these revisions: since a release it is
    `release-margin-percent`, because small slowdowns add up."""
    if not revisions.release:
        return config
    gate = config.gate
    wider = msgspec.structs.replace(gate, margin_percent=gate.release_margin_percent)
    return msgspec.structs.replace(config, gate=wider)


def matching_paths(config: Config, paths: Iterable[str]) -> tuple[str, ...]:
    """Returns the paths that some entry matches, in order."""
    return tuple(sorted(path for path in paths if entry_for(config, path) is not None))


class _Same:
    """Compares entries by identity, so that a cached answer is found without comparing all of
    them."""

    def __init__(self, models: tuple[ModelConfig, ...]) -> None:
        self.models = models

    def __hash__(self) -> int:
        return id(self.models)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.models is self.models


class _Entries:
    """Indexes entries of one literal path by it: a change may have one for each of its models."""

    def __init__(self, models: tuple[ModelConfig, ...]) -> None:
        self._models = models
        paths = [entry.path.removeprefix("./") for entry in models]
        self._exact: dict[str, int] = {}
        self._globs = [at for at, path in enumerate(paths) if is_glob(path)]
        for at, path in enumerate(paths):
            if not is_glob(path):
                self._exact.setdefault(path, at)

    def first_match(self, path: str) -> ModelConfig | None:
        last = self._exact.get(path, len(self._models))
        later = (at for at in self._globs if at > last or matches(self._models[at].path, path))
        at = min(next(later, last), last)
        return self._models[at] if at < len(self._models) else None


@lru_cache(maxsize=8)
def _entries(same: _Same) -> _Entries:
    return _Entries(same.models)


# Problems of the sizes that a new configuration gives, for all models at once. A missing size
# concerns its model alone, whose finding reports it.

_Inputs = Mapping[changes.ModelPath, Sequence[changes.ModelInput] | None]
_MOST_PROBLEMS = 50
"""The most problems that are listed: a pull request may have made any number."""


def shape_problems(
    reader: ModelReader,
    config: Config,
    old_config: Config | None,
    as_written: Config,
    versions: Mapping[changes.ModelPath, changes.ModelVersion],
) -> tuple[str, ...]:
    """Returns a line for each problem of the head's models `versions` with the sizes `as_written`
    beside them. Models whose settings are the base's are not opened. Unreadable models have no
    problem here."""
    if old_config is not None and _shape_settings(old_config) == _shape_settings(config):
        return ()
    paths = matching_paths(as_written, versions)
    inputs = {path: inputs_of(reader, versions[path]) for path in paths}
    problems = chain(stray_symbols(as_written, inputs), _of_models(as_written, inputs))
    return tuple(islice(problems, _MOST_PROBLEMS))


def stray_symbols(config: Config, inputs: _Inputs) -> Iterator[str]:
    """Yields the symbols that no model has. `inputs` are those of all models, None for an
    unreadable one, whose symbols are unknown."""
    yield from _strays("dims", config.dims, _known_symbols(inputs.values()))
    inputs_of_entries = defaultdict[int, list[Sequence[changes.ModelInput] | None]](list)
    for path, has in inputs.items():
        inputs_of_entries[id(entry_for(config, path))].append(has)
    for entry in config.models:
        symbols = _known_symbols(inputs_of_entries[id(entry)])
        for where, dims in _dims_of(entry):
            yield from _strays(where, dims, symbols)


def _dims_of(entry: ModelConfig) -> Iterator[tuple[str, Mapping[str, int]]]:
    yield f"models: {entry.path}: dims", entry.dims
    for name, profile in entry.profiles.items():
        yield f"models: {entry.path}: profiles.{name}.dims", profile.dims


def _known_symbols(
    models: Collection[Sequence[changes.ModelInput] | None],
) -> Collection[str] | None:
    """Returns the symbols of these models, None without a model or with an unreadable one."""
    readable = [inputs for inputs in models if inputs is not None]
    if not readable or len(readable) < len(models):
        return None
    return dict.fromkeys(sorted(set(chain.from_iterable(map(symbols_of, readable)))))


def _strays(where: str, dims: Mapping[str, int], symbols: Collection[str] | None) -> Iterator[str]:
    for symbol in dims:
        if symbols is not None and symbol not in symbols:
            hint = did_you_mean(symbol, [*symbols], "Remove it.")
            yield f"{where}.{symbol}: no dynamic dimension of these models has this name. {hint}"


def _of_models(config: Config, inputs: _Inputs) -> Iterator[str]:
    for path, has in inputs.items():
        for name in profiles_for(config, path):
            for problem in shapes_for(config, name, has).mistakes:
                yield f"{name}: {problem}"


def inputs_of(
    reader: ModelReader, version: changes.ModelVersion | None
) -> tuple[changes.ModelInput, ...] | None:
    """Returns the inputs of a version, None for none and for an unreadable one."""
    outline = None if version is None else reader.outline(version)
    return None if outline is None else outline.inputs


def _shape_settings(config: Config) -> tuple[object, ...]:
    entries = [(model.path, model.dims, model.inputs, model.profiles) for model in config.models]
    return config.dims, entries
