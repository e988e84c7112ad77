"""`tunegate attest`: signs the verdict in `--out` as evidence for other places."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tunegate import __version__
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.changes import SIDES, ChangeSet, ModelVersion, Side
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.handlers.reporting import write_line
from tunegate.errors import ArtifactError
from tunegate.system.clock import SystemClock
from tunegate.system.git.repository import GitRepository
from tunegate.system.output.directory import refuse_tracked
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate_cache.format.signing import public_text
from tunegate_deploy.command import AttestOptions
from tunegate_deploy.evidence.cyclonedx import bill_of_materials
from tunegate_deploy.evidence.envelope import (
    EvidenceError,
    read_private_key,
    sign,
)
from tunegate_deploy.evidence.statement import checksums, make_statement

_SHA256 = re.compile(r"[0-9a-f]{64}")
KEY_VARIABLE = "TUNEGATE_EVIDENCE_KEY"
_OF_A_RUN = "tunegate run writes it. The verdict of compare names no commits, and cannot be signed."


def run(options: AttestOptions) -> int:
    """Writes evidence.json, and for other signers statement.json, or predicate.json with
    subjects.sha256. Raises ArtifactError if the files of `--out` do not belong together,
    OutputError if they are committed, EvidenceError for the key."""
    out = options.settings.out
    refuse_tracked(out)  # a verdict that was committed is nobody's measurement
    verdict = artifact_io.read(out / "verdict.json", Verdict)
    changes = artifact_io.read(out / "changes.json", ChangeSet, _OF_A_RUN)
    run_of_gate = _read_measurements(out, verdict)
    if verdict.revisions != changes.revisions:
        raise ArtifactError(f"{out / 'changes.json'}: not of this verdict. Run the gate again.")
    files = _files(GitRepository(options.settings.repository), changes)
    # A verdict does not become younger by being signed again, or copied between jobs.
    written = verdict.origin.judged_at or (out / "verdict.json").stat().st_mtime
    seconds = min(SystemClock().time(), written)
    judged_at = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    statement = make_statement(
        verdict, changes, run_of_gate, files, version=__version__, now=judged_at
    )
    document = msgspec.json.encode(statement)
    artifact_io.write_bytes(out / "statement.json", document)
    artifact_io.write_bytes(out / "predicate.json", msgspec.json.encode(statement.predicate))
    artifact_io.write_bytes(out / "subjects.sha256", checksums(statement).encode())
    if options.settings.as_json:
        write_line(document.decode())
    if options.cyclonedx:
        artifact_io.write_bytes(out / "evidence.cdx.json", bill_of_materials(statement))
    pem = os.environ.get(KEY_VARIABLE, "")
    if not pem.strip() and not options.unsigned:
        raise EvidenceError(
            f"{KEY_VARIABLE} is not set. Give it an Ed25519 key in PEM, or say --unsigned and sign "
            "statement.json otherwise."
        )
    if pem.strip():
        key = read_private_key(pem, KEY_VARIABLE)
        artifact_io.write_bytes(out / "evidence.json", sign(statement, key))
        sys.stderr.write(
            f"evidence: {out / 'evidence.json'}, signed by {public_text(key.public_key())}\n"
        )
    return 0


def _read_measurements(out: Path, verdict: Verdict) -> MeasurementRun | None:
    """Returns the measurements that the verdict names, None if it names none. Raises
    ArtifactError."""
    if not verdict.origin.measurements:
        return None
    path = out / "measurements.json"
    run_of_gate = artifact_io.read(path, MeasurementRun)
    if digest_of(run_of_gate) != verdict.origin.measurements:
        raise ArtifactError(f"{path}: not the measurements of this verdict. Run the gate again.")
    return run_of_gate


def _files(repository: GitRepository, changes: ChangeSet) -> dict[tuple[Side, str], str]:
    """Returns the SHA-256 digest of every model file on each side, by its path in the repository:
    of the bytes that a checkout has, through Git LFS and DVC."""
    versions: dict[tuple[Side, str], ModelVersion] = {}
    for change in changes.models:
        for side, version in zip(SIDES, (change.base, change.head), strict=True):
            if version is not None:
                # The upgrade of a runtime, which comes later, has the head's model on both sides.
                versions.setdefault((side, version.path), version)
    return {
        (side, path): digest
        for (side, _), version in versions.items()
        for path, digest in _digests(repository, version)
    }


def _digests(repository: GitRepository, version: ModelVersion) -> Iterator[tuple[str, str]]:
    # Of two files, and not of a repository: there only the digest of an LFS model looks like it.
    if version.storage != "lfs" and _SHA256.fullmatch(version.content_digest):
        yield version.path, version.content_digest
        yield from ((str(Path(version.path).parent / x.path), x.digest) for x in version.external)
        return
    with TemporaryFolder() as place:
        model = repository.export_model(version, Path(place))
        for file in sorted(Path(place).rglob("*")):
            if file.is_file():
                beside = file.relative_to(model.parent).as_posix()
                with file.open("rb") as content:
                    digest = hashlib.file_digest(content, "sha256").hexdigest()
                yield (Path(version.path).parent / beside).as_posix(), digest
