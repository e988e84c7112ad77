"""Exports the changed models of both revisions as files: read from git, without a second
checkout."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

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
)
from tunegate.artifacts.inputs import GivenFor, InputRule, KnownInputs, ShapedModel
from tunegate.config import Config, TargetConfig
from tunegate.errors import ModelError
from tunegate.models.model_inputs import defaults_of_file
from tunegate.models.sizes import likeliest_keys
from tunegate.ports import ModelJob, Repository, Shapes
from tunegate.review.input_shapes import ResolvedShapes
from tunegate.review.side_settings import SideSettings, settings_of_sides
from tunegate.system.onnx_scan import parsed_model
from tunegate.tools import ModelSource

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


class _Exporting:
    """The exports so far."""

    def __init__(self, source: ModelSource, revisions: Revisions) -> None:
        self._source = source
        # The base first: its files count where they fit, as its configuration does.
        self._revisions = tuple(filter(None, (revisions.judged_by, revisions.base, revisions.head)))
        self.files: dict[tuple[ModelPath, Side], ShapedModel] = {}
        self.unreadable: dict[tuple[ModelPath, Side], str] = {}
        self.resized: dict[tuple[ModelPath, Side], Shapes] = {}

    def add(self, change: ModelChange) -> None:
        source, path = self._source, change.path
        files: dict[Side, Path] = {}
        for side, version in change.compiled_sides.items():
            try:
                files[side] = _file(version, source.repository, source.workdir)
            except ModelError as error:
                self.unreadable[path, side] = str(error)
        inputs = {side: source.read_inputs(file) for side, file in files.items()}
        settings = settings_of_sides(source.config, source.config_before, change, inputs)
        for side, file in files.items():
            try:
                _require_sizes(path, file, settings[side])
                if side == "head" and inputs[side] is not None:
                    _require_no_new_default(path, file, inputs)
                if settings[side].resized:
                    self.resized[path, side] = settings[side].resized
                rules = self._read_rules(path, side, file, settings[side])
            except ModelError as error:
                self.unreadable[path, side] = str(error)
                continue
            self.files[path, side] = ShapedModel(file, settings[side].shapes, rules)

    def _read_rules(
        self, name: ModelPath, side: Side, file: Path, settings: SideSettings
    ) -> Mapping[str, InputRule]:
        """Returns the user's values as rules. A base that does not take all of them runs on those
        that it takes."""
        request = GivenFor(
            values=settings.values,
            shapes=settings.shapes,
            revisions=self._revisions,
            former=settings.former,
        )
        answer = self._source.read_values(file, request)
        if answer.problems and side == "head":
            raise ModelError(f"{name}: {' '.join(answer.problems)}")
        return answer.rules


def _require_sizes(name: ModelPath, file: Path, settings: SideSettings) -> None:
    """Raises ModelError with everything that is wrong in the configuration."""
    shapes = settings.configured
    if shapes.problems:
        is_hinted = settings.of_base or not shapes.mistakes
        likely = _likely_sizes(file, shapes, settings.of_base) if is_hinted else ()
        raise ModelError(f"{name}: {' '.join((*shapes.problems, *likely))}")


def _require_no_new_default(
    name: ModelPath, head: Path, inputs: Mapping[Side, Sequence[ModelInput] | None]
) -> None:
    """Raises ModelError for an input of the base that has a default in the head: callers go on
    giving it, and the gate would run the head on the default."""
    base, own = ({each.name for each in inputs.get(side) or ()} for side in SIDES)
    lost_names = base - own
    if lost_names and (by_default := sorted(lost_names & defaults_of_file(head))):
        message = (
            f"{name}: input {by_default[0]} is an initializer now, so that callers may leave it "
            "out: the gate would not give it. Keep it as it was, or give the input another name."
        )
        raise ModelError(message)


def _likely_sizes(file: Path, shapes: ResolvedShapes, of_base: Shapes) -> Iterator[str]:
    """Yields a sentence with likely keys to paste, with the base's sizes where names are new. A run
    takes no size that nobody wrote: the sides of later changes would be timed at other sizes."""
    before = {(name, axis): n for name, shape in of_base.items() for axis, n in enumerate(shape)}
    open_places = {(each.input, each.axis) for each in shapes.dimensions if each.size is None}
    with suppress(ModelError, OSError):
        keys = likeliest_keys(parsed_model(file.read_bytes()), open_places, before)
        if keys:
            yield f"Likely, as keys of its entry: {keys}. tunegate init tries such sizes."


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
