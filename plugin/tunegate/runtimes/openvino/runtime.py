"""OpenVINO on CPUs: needs no compiler, and takes the model as it is.

Its cache of compiled models is not used: it spares 0.1 s of a launch, and is as large as the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tunegate.artifacts.candidates import QUANTIZATION, STATIC
from tunegate.config import TargetConfig
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.errors import NotOfferedError
from tunegate.runtimes.openvino.precisions import OWN, QUANTIZER, lacking, variants
from tunegate.runtimes.runtime import Loaded, SavingRuntime

_MODEL = "model.onnx"


class OpenVino:
    name, title = "openvino", "OpenVINO"

    def unsupported(self, target: TargetConfig) -> str:
        if target.kind != "llvm":
            return "is for CPUs"
        if _is_installed(self.name):
            return ""
        return "needs openvino: pip install 'tunegate[openvino]'"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return variants()

    def versions(self) -> Mapping[str, str]:
        """Returns the versions that decide what runs, the quantizer's too."""
        return {name: version(name) for name in (self.name, OWN) if _is_installed(name)}

    def lacking(self, settings: Mapping[str, str]) -> str:
        return lacking(settings)

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        if problem := lacking(settings):
            raise NotOfferedError(problem)
        if settings.get(QUANTIZER) == OWN:
            if not _is_installed(OWN):
                message = "its own quantizer is not installed: pip install 'tunegate[nncf]'"
                raise NotOfferedError(message)
            from tunegate.runtimes.openvino.own_int8 import save_own  # noqa: PLC0415

            return save_own(model, directory)
        if settings.get(QUANTIZATION) == STATIC:
            # Loads what quantizes, which no process that measures needs.
            from tunegate.edges.reference.static_int8 import save_static  # noqa: PLC0415

            save_static(model, directory / _MODEL)
            return _MODEL
        model.copy_to(directory / _MODEL)
        return _MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.runtimes.openvino.model import OpenVinoModel  # noqa: PLC0415

        return OpenVinoModel(directory, artifact)


def _is_installed(name: str) -> bool:
    return find_spec(name) is not None


RUNTIME: SavingRuntime = OpenVino()
