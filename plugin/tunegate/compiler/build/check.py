"""A compiled model beside the reference. Runs in a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tunegate.compiler.build.check_messages import CheckArtifact, Checked, CheckReply
from tunegate.compiler.forms import loaded_form
from tunegate.compiler.loader import TvmArtifact, device_exists
from tunegate.models.reference.comparison import DidNotRun, compared
from tunegate.models.reference.error_samples import sampled_errors
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.protocol import Failed

Run = Callable[[Mapping[str, Any]], Sequence[Any]]


def check_numbers(request: CheckArtifact) -> CheckReply:
    """Answers with how far the numbers lie apart, or samples of that, where this machine can run
    them."""
    if not device_exists(request.kind):
        return Checked()
    directory = Path(request.directory)
    artifact = ArtifactFile.read(directory)
    return check_run(_run_of(directory, artifact), artifact, request)


def check_run(run: Run, artifact: ArtifactFile, request: CheckArtifact) -> Checked | Failed:
    """Answers as `check_numbers` does, of an artifact that is loaded."""
    reference = Path(request.reference)
    if request.samples:
        names = [each.name for each in artifact.outputs]
        sampled = sampled_errors(
            run, reference, artifact.inputs, names, request.samples, cases=request.cases
        )
        if isinstance(sampled, DidNotRun):
            return Failed(sampled.reason, model=True)
        return Checked(sampled=sampled)
    found = compared(run, reference, artifact, request.seeds)
    if isinstance(found, DidNotRun):
        return Failed(found.reason, model=True, reference=found.of_reference)
    return Checked(found)


def _run_of(directory: Path, artifact: ArtifactFile) -> Run:
    return (loaded_form(directory, artifact) or TvmArtifact(directory, artifact)).run
