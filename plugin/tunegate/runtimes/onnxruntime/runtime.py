"""ONNX Runtime on CPUs: needs no compiler, and takes the model as it is or in int8."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunegate.artifacts.candidates import PRECISION, QUANTIZATION, STATIC
from tunegate.config import TargetConfig
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.runtimes.runtime import Loaded, SavingRuntime

MODEL = "model.onnx"


class OnnxRuntime:
    name, title = "onnxruntime", "ONNX Runtime"

    def unsupported(self, target: TargetConfig) -> str:
        return "" if target.kind == "llvm" else "is for CPUs"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {
            "": {},
            "int8": {PRECISION: "int8", QUANTIZATION: STATIC},
            "int8.dynamic": {PRECISION: "int8"},
        }

    def versions(self) -> Mapping[str, str]:
        from tunegate.edges.reference.onnx_runtime import onnxruntime  # noqa: PLC0415

        return {self.name: onnxruntime.__version__}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        if settings.get(QUANTIZATION) == STATIC:
            # Loads what quantizes, which no process that measures needs.
            from tunegate.edges.reference.static_int8 import save_static  # noqa: PLC0415

            save_static(model, directory / MODEL)
            return MODEL
        if PRECISION in settings:
            # Loads what quantizes, which no process that measures needs.
            from tunegate.runtimes.onnxruntime.dynamic_int8 import save_quantized  # noqa: PLC0415

            save_quantized(model, directory / MODEL)
            return MODEL
        model.copy_to(directory / MODEL)
        return MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.runtimes.onnxruntime.artifact import OnnxArtifact  # noqa: PLC0415

        return OnnxArtifact(directory, artifact)


RUNTIME: SavingRuntime = OnnxRuntime()
