"""A model that is compiled whole beside ONNX Runtime: where it is slower, its parts may not be."""

from __future__ import annotations

from pathlib import Path

from tunegate.compiler.loader import TvmArtifact, pays
from tunegate.compiler.runtime import use_threads
from tunegate.models.reference.part_session import opened_part
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_hybrid.decision import PartsDecision
from tunegate_hybrid.messages import BuildParts


def is_slower(how: BuildParts) -> bool:
    """Returns whether the whole build is slower than the model as ONNX Runtime runs it; what was
    decided for the same kernels is not measured again."""
    artifact = ArtifactFile.read(Path(how.whole))
    decision = PartsDecision.of_whole(Path(how.decided), artifact.tasks, how.threads)
    known = decision.read(bool)
    if known is not None:
        return known
    decided = _measured(how, artifact)
    decision.write(decided)
    return decided


def _measured(how: BuildParts, artifact: ArtifactFile) -> bool:
    use_threads(how.threads)
    feed = seeded_inputs(artifact.inputs, how.build.seed)
    session = opened_part(Path(how.build.model.file), how.threads)
    compiled = TvmArtifact(Path(how.whole), artifact).bound(feed)
    return pays(lambda: session.run(None, feed), compiled, how.threads)
