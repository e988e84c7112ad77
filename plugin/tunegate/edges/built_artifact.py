"""An artifact that lies somewhere, as a build: of an earlier run, or what production has."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.edges.artifact_file import ArtifactFile
from tunegate.errors import ArtifactError


def built_artifact(directory: Path) -> Build:
    """Raises ArtifactError for a directory that holds none."""
    artifact = ArtifactFile.read(directory)
    file = directory / artifact.file
    if not file.is_file():
        message = f"{file}: missing, though {directory / 'artifact.json'} names it. Build it again."
        raise ArtifactError(message)
    try:
        tasks = msgspec.convert(artifact.tasks, tuple[BuiltTask, ...])
    except msgspec.ValidationError:
        tasks = ()  # of another version; they only explain
    return Build(
        key=artifact.key or str(file.resolve()),
        directory=str(directory.resolve()),
        tasks=tasks,
        check=None,
        error=None,
        size_bytes=sum(each.stat().st_size for each in directory.iterdir() if each.is_file()),
        seconds=0.0,
        runtime=artifact.runtime,
    )
