"""A runtime for tunegate that computes small models with NumPy."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from tunegate.config import TargetConfig
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.runtime import Loaded, SavingRuntime
from tunegate.system.output.artifact_file import ArtifactFile


class NumpyRuntime:
    """The runtime that the entry point names. Imports heavy modules when they are needed."""

    name, title = "numpy_example", "NumPy"

    def unsupported(self, target: TargetConfig) -> str:
        return "" if target.kind == "llvm" else "is for CPUs"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}}

    def versions(self) -> Mapping[str, str]:
        return {each: version(each) for each in ("numpy", "tunegate-runtime-example")}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        from numpy_model import save

        return save(model.fixed, directory)

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from numpy_model import NumpyModel

        return NumpyModel(directory / artifact.file)


RUNTIME: SavingRuntime = NumpyRuntime()
