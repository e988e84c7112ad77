"""An artifact, loaded by the runtime that it names: that one alone is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.registry import runtime_named
from tunegate.runtimes.runtime import Inference, Loaded
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, built_artifact


def load(directory: Path | str) -> Loaded:
    """Raises ArtifactError, and ConfigError where its runtime is not installed."""
    loaded, _ = _loaded(Path(directory))
    return loaded


def titled_artifact(directory: Path) -> Build:
    """Returns the artifact as a build with the title of its runtime. Raises ArtifactError, and
    ConfigError where its runtime is not installed."""
    build = built_artifact(directory)
    return msgspec.structs.replace(build, title=runtime_named(build.runtime).title)


def bound_inference(
    directory: Path, seed: int, inputs: Sequence[ArtifactTensor] = (), case: int | None = None
) -> Inference:
    """Returns one inference on the inputs of `seed`, by these rules or by the artifact's own. Of
    cases that were given it takes `case`, or one that the seed chooses."""
    loaded, artifact = _loaded(directory)
    return loaded.bound(seeded_inputs(inputs or artifact.inputs, seed, case))


def operators_ms(directory: Path, inferences: int, seed: int) -> dict[str, float]:
    """Returns what each operator takes in one inference of the whole model: medians."""
    loaded, artifact = _loaded(directory)
    return dict(loaded.operators_ms(seeded_inputs(artifact.inputs, seed), inferences))


def _loaded(directory: Path) -> tuple[Loaded, ArtifactFile]:
    artifact = ArtifactFile.read(directory)
    return runtime_named(artifact.runtime).load(directory, artifact), artifact
