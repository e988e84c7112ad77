"""A compiled model beside the reference. Runs in a child."""

from __future__ import annotations

from pathlib import Path

from tunegate.edges.metaschedule.checks.check_messages import CheckArtifact, Checked, CheckReply
from tunegate.edges.metaschedule.loader import TvmArtifact, device_exists
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.edges.reference.comparison import DidNotRun, compared
from tunegate.engine.protocol import Failed


def check_numbers(request: CheckArtifact) -> CheckReply:
    """Answers with how far the numbers lie apart, where this machine can run them."""
    if not device_exists(request.kind):
        return Checked()
    directory = Path(request.directory)
    artifact = ArtifactFile.read(directory)
    run = TvmArtifact(directory, artifact).run
    found = compared(run, Path(request.reference), artifact, request.seeds)
    if isinstance(found, DidNotRun):
        return Failed(found.reason, model=True)
    return Checked(found)
