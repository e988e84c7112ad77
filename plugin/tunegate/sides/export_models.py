"""The changed models of both revisions, as files: read from git, with no second checkout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelPath, ModelVersion, Side
from tunegate.artifacts.input_rules import KnownInputs
from tunegate.artifacts.shaped_model import ShapedModel
from tunegate.config import Config, TargetConfig
from tunegate.errors import ModelError
from tunegate.ports import ModelJob, Repository
from tunegate.selection import shapes_for
from tunegate.tools import ModelSource

ModelFiles = Mapping[tuple[ModelPath, Side], ShapedModel]


class ExportedModels(msgspec.Struct, frozen=True, kw_only=True):
    """`unreadable` are sides that are no model, or do not take their shapes, and why: they have no
    file."""

    config: Config
    files: ModelFiles
    unreadable: Mapping[tuple[ModelPath, Side], str] = {}

    def job(self, path: ModelPath, side: Side, target: TargetConfig) -> ModelJob:
        """One side of a model, for the compiler. Raises ModelError for one that is no model."""
        if (path, side) in self.unreadable:
            raise ModelError(self.unreadable[path, side])
        model = self.files[path, side]
        base = self.files.get((path, "base")) if side == "head" else None
        return ModelJob(
            file=model.file,
            path=path,
            shapes=model.shapes,
            target=target,
            inputs=KnownInputs(base="" if base is None else str(base.file.absolute())),
        )


def export_models(changes: ChangeSet, source: ModelSource) -> ExportedModels:
    """One directory for each version that has work to do; equal contents share one. What an
    earlier stage of the run has written to the `workdir` is not written again."""
    files: dict[tuple[ModelPath, Side], ShapedModel] = {}
    unreadable: dict[tuple[ModelPath, Side], str] = {}
    for change in changes.models:
        for side, version in versions(change).items():
            try:
                files[change.path, side] = _shaped(change.path, version, source)
            except ModelError as error:
                unreadable[change.path, side] = str(error)
    return ExportedModels(config=source.config, files=files, unreadable=unreadable)


def _shaped(name: ModelPath, version: ModelVersion, source: ModelSource) -> ShapedModel:
    """Raises ModelError for what is no model, and with all that is wrong with its shapes."""
    file = _file(version, source.repository, source.workdir)
    found = shapes_for(source.config, name, source.read_inputs(file))
    if found.problems:
        raise ModelError(f"{name}: {' '.join(found.problems)}")
    return ShapedModel(file, found.shapes)


def _file(version: ModelVersion, repository: Repository, workdir: Path) -> Path:
    into = workdir / "models" / _identity(version)
    link = into.with_suffix(".path")
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_text(str(repository.export_model(version, into)))
    return Path(link.read_text())


def _identity(version: ModelVersion) -> str:
    """Equal for equal contents, where those of external data files count."""
    parts = (version.content_digest, *(external.digest for external in version.external))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def versions(change: ModelChange) -> dict[Side, ModelVersion]:
    """The sides of a change that must be compiled: none of a model
    that is gone or merely renamed."""
    if change.kind in {"deleted", "renamed", "unreadable"}:
        return {}
    sides: dict[Side, ModelVersion] = {}
    if change.base is not None:
        sides["base"] = change.base
    if change.head is not None:
        sides["head"] = change.head
    return sides
