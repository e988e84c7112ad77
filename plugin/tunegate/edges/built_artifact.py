"""An artifact that lies somewhere, as a build: of an earlier run, or what production has."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.edges.artifact_file import NAME, ArtifactFile
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
        key=_content_key(artifact, directory),
        directory=str(directory.resolve()),
        tasks=tasks,
        check=None,
        error=None,
        size_bytes=sum(each.stat().st_size for each in directory.iterdir() if each.is_file()),
        seconds=0.0,
        runtime=artifact.runtime,
    )


def _content_key(artifact: ArtifactFile, directory: Path) -> str:
    """Of all that decides what runs, by its bytes: what an artifact says of itself may be edited."""
    said = msgspec.structs.replace(artifact, model="", key="", target={}, toolchain={}, tasks=[])
    parts = [hashlib.sha256(msgspec.json.encode(said)).hexdigest()]
    for file in sorted(each for each in directory.rglob("*") if each.is_file()):
        if file.name != NAME:
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            parts.append(f"{file.relative_to(directory)} {digest}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
