"""Loads an artifact with the runtime that it names, and imports no other."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build
from tunegate.models.operator_libraries import Libraries, library_files, named_by
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.registry import runtime_named
from tunegate.runtimes.runtime import Inference, Loaded
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, built_artifact


def load(directory: Path | str) -> Loaded:
    """Returns the loaded artifact. Raises ArtifactError, and ConfigError if its runtime is not
    installed."""
    loaded, _ = _load(Path(directory))
    return loaded


def titled_artifact(directory: Path) -> Build:
    """Returns the artifact as a build with its runtime's title. Raises ArtifactError, and
    ConfigError if its runtime is not installed."""
    build = built_artifact(directory)
    return msgspec.structs.replace(build, title=runtime_named(build.runtime).title)


def bound_inference(
    directory: Path,
    seed: int,
    inputs: Sequence[ArtifactTensor] = (),
    case: int | None = None,
    libraries: Libraries = (),
) -> Inference:
    """Returns a function that runs one inference on the inputs of `seed`, by these rules or the
    artifact's own. Of given cases it takes `case`, or one that the seed chooses."""
    loaded, artifact = _load(directory, libraries)
    return loaded.bound(seeded_inputs(inputs or artifact.inputs, seed, case))


def operators_ms(
    directory: Path, inferences: int, seed: int, libraries: Libraries = ()
) -> dict[str, float]:
    """Returns the median time of each operator in one inference of the whole model."""
    loaded, artifact = _load(directory, libraries)
    return dict(loaded.operators_ms(seeded_inputs(artifact.inputs, seed), inferences))


def _load(directory: Path, libraries: Libraries = ()) -> tuple[Loaded, ArtifactFile]:
    """Loads the libraries that the artifact was built with, where they are among those given."""
    artifact = ArtifactFile.read(directory)
    if artifact.libraries:
        # Loads ONNX Runtime, which artifacts of other runtimes do without.
        from tunegate.models.reference.onnx_runtime import use_libraries  # noqa: PLC0415

        use_libraries(library_files(named_by(libraries, artifact.libraries)))
    return runtime_named(artifact.runtime).load(directory, artifact), artifact
