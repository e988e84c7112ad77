"""The changed models of both revisions, as files: read from git, with no second checkout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelPath, ModelVersion, Side
from tunegate.ports import Repository

ModelFiles = Mapping[tuple[ModelPath, Side], Path]


def export_models(changes: ChangeSet, repository: Repository, workdir: Path) -> ModelFiles:
    """One directory for each version that has work to do; equal contents share one."""
    files: dict[tuple[ModelPath, Side], Path] = {}
    by_version: dict[tuple[str, ...], Path] = {}
    for change in changes.models:
        for side, version in versions(change).items():
            identity = (version.content_digest, *(e.digest for e in version.external))
            if identity not in by_version:
                into = workdir / "models" / str(len(by_version))
                by_version[identity] = repository.export_model(version, into)
            files[change.path, side] = by_version[identity]
    return files


def versions(change: ModelChange) -> dict[Side, ModelVersion]:
    """The sides of a change that must be compiled: none of a deleted or merely renamed model."""
    if change.kind in {"deleted", "renamed"}:
        return {}
    sides: dict[Side, ModelVersion] = {}
    if change.base is not None:
        sides["base"] = change.base
    if change.head is not None:
        sides["head"] = change.head
    return sides
