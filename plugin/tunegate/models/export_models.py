"""Exports the changed models of both revisions as files: read from git, without a second
checkout."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.artifacts.changes import (
    SIDES,
    ChangeSet,
    ModelChange,
    ModelInput,
    ModelPath,
    ModelVersion,
    Revisions,
    Side,
    gated_name,
    profile_of,
)
from tunegate.artifacts.inputs import GivenFor, InputRule, KnownInputs, ShapedModel
from tunegate.config import Config, TargetConfig, ValuesConfig
from tunegate.errors import ModelError
from tunegate.models.sizes import likeliest_keys
from tunegate.ports import ModelJob, Repository, Shapes
from tunegate.review.covered_model import names_in_head
from tunegate.review.input_shapes import ResolvedShapes, ShapeLevel, takes
from tunegate.review.model_settings import (
    entry_shapes,
    profiles_for,
    shape_levels,
    shapes_for,
    values_for,
)
from tunegate.system.onnx_scan import parsed_model
from tunegate.tools import ModelSource

# Settings that only the base's configuration has: for inputs that its model has and the head's has
# not.


class SaidOfLost(NamedTuple):
    """The base's shapes and values for lost inputs, by their names in the base."""

    shapes: Mapping[str, tuple[int, ...]] = {}
    values: Mapping[str, ValuesConfig] = {}


def explain_lost_inputs(
    config: Config | None,
    change: ModelChange,
    inputs: Sequence[ModelInput],
    lost: Collection[str],
    wanted: ResolvedShapes,
) -> SaidOfLost:
    """Returns the base's settings for inputs that the head lost. `config` is the base's, `inputs`
    its model's, `wanted` the head's shapes. A model gated under a new name is found by its
    shapes."""
    if config is None or change.base is None or not lost:
        return SaidOfLost()
    found = {
        name: shapes_for(config, name, inputs).shapes
        for name in profiles_for(config, change.base.path)
    }
    same = gated_name(change.base.path, profile_of(change.path))
    alike = (name for name in found if _agree(found[name], wanted.shapes, lost))
    was = same if same in found else next(alike, None)
    if was is None:
        return SaidOfLost()
    values = values_for(config, was)
    return SaidOfLost(
        shapes={name: shape for name, shape in found[was].items() if name in lost},
        values={name: each for name, each in values.items() if name in lost},
    )


def _agree(
    one: Mapping[str, tuple[int, ...]], other: Mapping[str, tuple[int, ...]], lost: Collection[str]
) -> bool:
    """Returns whether both have the same shapes for the inputs that are not lost."""
    return all(other.get(name, shape) == shape for name, shape in one.items() if name not in lost)


ModelFiles = Mapping[tuple[ModelPath, Side], ShapedModel]


class ExportedModels(msgspec.Struct, frozen=True, kw_only=True):
    """The exported files. `unreadable` maps a side that is no model, or rejects its shapes, to the
    reason: it has no file. `resized` maps a side that runs at the other side's sizes to these."""

    config: Config
    files: ModelFiles
    unreadable: Mapping[tuple[ModelPath, Side], str] = {}
    resized: Mapping[tuple[ModelPath, Side], Shapes] = {}

    def job(self, path: ModelPath, side: Side, target: TargetConfig) -> ModelJob:
        """Returns the compiler's job for one side of a model. Raises ModelError if it is no
        model."""
        if (path, side) in self.unreadable:
            raise ModelError(self.unreadable[path, side])
        model = self.files[path, side]
        base = self.files.get((path, "base")) if side == "head" else None
        return ModelJob(
            file=model.file,
            path=path,
            shapes=model.shapes,
            target=target,
            inputs=KnownInputs(
                given=dict(model.given), base="" if base is None else str(base.file.absolute())
            ),
        )


def export_models(changes: ChangeSet, source: ModelSource) -> ExportedModels:
    """Exports each version with work to do into its own directory; equal contents share one. Files
    that an earlier stage of the run wrote to the `workdir` are reused."""
    exporting = _Exporting(source, changes.revisions)
    for change in changes.models:
        exporting.add(change)
    return ExportedModels(
        config=source.config,
        files=exporting.files,
        unreadable=exporting.unreadable,
        resized=exporting.resized,
    )


class _Said(NamedTuple):
    """Additions to the judging configuration for one side. `lost` and `not_of_it` are inputs in it
    that this side lacks, `former` the base's names of renamed ones."""

    lost: SaidOfLost = SaidOfLost()
    not_of_it: frozenset[str] = frozenset()
    former: Mapping[str, str] = {}


class _Exporting:
    """The exports so far."""

    def __init__(self, source: ModelSource, revisions: Revisions) -> None:
        self._source = source
        self._revisions = _of_values(revisions)
        self.files: dict[tuple[ModelPath, Side], ShapedModel] = {}
        self.unreadable: dict[tuple[ModelPath, Side], str] = {}
        self.resized: dict[tuple[ModelPath, Side], Shapes] = {}

    def add(self, change: ModelChange) -> None:
        files: dict[Side, Path] = {}
        for side, version in change.compiled_sides.items():
            try:
                files[side] = _file(version, self._source.repository, self._source.workdir)
            except ModelError as error:
                self.unreadable[change.path, side] = str(error)
        inputs = {side: self._source.read_inputs(file) for side, file in files.items()}
        base, head = (inputs.get(side) or () for side in SIDES)
        names = names_in_head(inputs.get("base"), inputs.get("head"))
        same = {
            "base": static_sizes(names.backwards.inputs(head), base),
            "head": static_sizes(names.inputs(base), head),
        }
        lost = explain_lost_inputs(
            self._source.config_before,
            change,
            base,
            names.gone,
            shapes_for(self._source.config, change.path, head),
        )
        said_of = {
            "base": _Said(lost, names.new | same["head"].keys()),
            "head": _Said(former=names.backwards.renamed),
        }
        for side, file in files.items():
            said = said_of[side]
            try:
                shapes = self._shapes(change.path, side, inputs[side], same[side], said, file=file)
                if side == "base":
                    same["head"] |= same_as_base(names.of(shapes), head)
                given = self._read_rules(change.path, side, file, shapes, said)
                self.files[change.path, side] = ShapedModel(file, shapes, given)
            except ModelError as error:
                self.unreadable[change.path, side] = str(error)

    def _read_rules(
        self, name: ModelPath, side: Side, file: Path, shapes: Shapes, said: _Said
    ) -> Mapping[str, InputRule]:
        """Returns the user's values as rules. A base that does not take all of them runs on those
        that it takes."""
        values = {**said.lost.values, **values_for(self._source.config, name)}
        wanted = GivenFor(
            values=values, shapes=shapes, revisions=self._revisions, former=said.former
        )
        found = self._source.read_values(file, wanted)
        if found.problems and side == "head":
            raise ModelError(f"{name}: {' '.join(found.problems)}")
        return found.rules

    def _shapes(
        self,
        name: ModelPath,
        side: Side,
        inputs: Sequence[ModelInput] | None,
        same: Shapes,
        said: _Said,
        *,
        file: Path,
    ) -> Shapes:
        """Returns one side's shapes; `same` are the other side's sizes, which this side runs at.
        Raises ModelError with everything that is wrong in the configuration."""
        given = shape_levels(self._source.config, name)
        lost = ShapeLevel(where="base", shapes=said.lost.shapes)
        levels = (lost, *(_without(level, said.not_of_it) for level in given))
        found = entry_shapes(levels, inputs)
        if found.problems:
            likely = () if found.mistakes else _likely_sizes(file, found)
            raise ModelError(f"{name}: {' '.join((*found.problems, *likely))}")
        if not same:
            return found.shapes
        shapes = entry_shapes((*levels, ShapeLevel(where="both", shapes=same)), inputs).shapes
        resized = {key: shape for key, shape in shapes.items() if found.shapes.get(key) != shape}
        if resized:
            self.resized[name, side] = resized
        return shapes


def _likely_sizes(file: Path, found: ResolvedShapes) -> Iterator[str]:
    """Yields a sentence with what could be pasted. A run takes no size that nobody wrote: sides of
    later changes would be timed at others."""
    open_places = {(each.input, each.axis) for each in found.dimensions if each.size is None}
    with suppress(ModelError, OSError):
        keys = likeliest_keys(parsed_model(file.read_bytes()), open_places)
        if keys:
            yield f"Likely, as keys of its entry: {keys}. tunegate init tries such sizes."


def _of_values(revisions: Revisions) -> tuple[str, ...]:
    """Returns the revisions to read values from, the base first: its files count where they fit, as
    its configuration does."""
    return tuple(filter(None, (revisions.judged_by, revisions.base, revisions.head)))


def _without(level: ShapeLevel, names: Collection[str]) -> ShapeLevel:
    shapes = {name: shape for name, shape in level.shapes.items() if name not in names}
    return msgspec.structs.replace(level, shapes=shapes)


def _file(version: ModelVersion, repository: Repository, workdir: Path) -> Path:
    into = workdir / "models" / _identity(version)
    link = into.with_suffix(".path")
    if not link.exists():
        shutil.rmtree(into, ignore_errors=True)  # left by an export that failed
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_text(str(repository.export_model(version, into)))
    return Path(link.read_text())


def _identity(version: ModelVersion) -> str:
    """Returns an identity that is equal for equal contents, external data files included."""
    parts = (version.content_digest, *(external.digest for external in version.external))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# The sizes at which base and head do the same work.

_Shapes = Mapping[str, tuple[int, ...]]


def static_sizes(
    fixed: Sequence[ModelInput], opened: Sequence[ModelInput]
) -> dict[str, tuple[int, ...]]:
    """The static shapes of one side, for the inputs that the other leaves open. The one cannot be
    run at others, and the other can be run at these."""
    return _accepted_shapes({value.name: _sizes(value) for value in fixed}, opened)


def same_as_base(shapes: _Shapes, head: Sequence[ModelInput]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes to run the base at, for inputs that the head leaves open: renaming a
    symbol must not make the model smaller."""
    return _accepted_shapes(shapes, head)


def _accepted_shapes(
    shapes: Mapping[str, tuple[int, ...] | None], head: Sequence[ModelInput]
) -> dict[str, tuple[int, ...]]:
    found = {}
    for value in head:
        shape = shapes.get(value.name)
        if shape is not None and _sizes(value) is None and takes(value, shape):
            found[value.name] = shape
    return found


def _sizes(value: ModelInput) -> tuple[int, ...] | None:
    """Returns the sizes of a static input, None for another."""
    sizes = tuple(size for size in value.dimensions if size is not None)
    return sizes if value.is_ranked and len(sizes) == len(value.dimensions) else None
