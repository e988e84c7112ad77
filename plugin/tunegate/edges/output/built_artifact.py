"""An artifact that lies somewhere, as a build: of an earlier run, or what production has."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, BuiltTask
from tunegate.digests import digest_of
from tunegate.edges.output.artifact_file import ARTIFACT_FILE, ArtifactFile, files_in
from tunegate.errors import ArtifactError


def built_artifact(directory: Path) -> Build:
    """Raises ArtifactError for a directory that holds none, or other files than were built."""
    artifact, files = _verified(directory)
    try:
        tasks = msgspec.convert(artifact.tasks, tuple[BuiltTask, ...])
    except msgspec.ValidationError:
        tasks = ()  # of another version; they only explain
    return Build(
        key=_content_key(artifact, files),
        digest=digest_of(artifact),
        directory=str(directory.resolve()),
        tasks=tasks,
        check=None,
        error=None,
        size_bytes=sum(each.stat().st_size for each in directory.iterdir() if each.is_file()),
        seconds=0.0,
        runtime=artifact.runtime,
        variant=artifact.variant,
    )


def check_unchanged(directory: Path, digest: str) -> None:
    """That the artifact is the one with this digest. Raises ArtifactError."""
    artifact, _ = _verified(directory)
    if digest_of(artifact) != digest:
        message = f"{directory}: another build than the one that was made here. Run it again."
        raise ArtifactError(message)


def _verified(directory: Path) -> tuple[ArtifactFile, dict[str, str]]:
    """Returns the artifact, and the digests of its files, after checking them."""
    artifact = ArtifactFile.read(directory)
    files = files_in(directory)
    for name in {artifact.file, *artifact.files}:
        said, found = artifact.files.get(name), files.get(name)
        if said is None or said != found:
            what = "missing" if found is None else "not the file"
            message = (
                f"{directory / name}: {what} that "
                f"{directory / ARTIFACT_FILE} names. Build it again."
            )
            raise ArtifactError(message)
    return artifact, files


def _content_key(artifact: ArtifactFile, files: dict[str, str]) -> str:
    """Returns a digest of all that decides what runs, by its bytes: an artifact's own description
    may be edited."""
    said = msgspec.structs.replace(
        artifact, files=files, model="", key="", target={}, toolchain={}, tasks=[]
    )
    return digest_of(said)
