"""ONNX Runtime on NVIDIA GPUs: its CUDA provider, in the precision of each candidate."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tunegate.artifacts.candidates import PRECISION
from tunegate.config import TargetConfig
from tunegate.edges.machine.installed_version import installed_version
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.runtimes.cuda_variants import FLOAT16, cuda_variants
from tunegate.runtimes.onnxruntime_cuda.provider import PACKAGES, missing_provider
from tunegate.runtimes.runtime import Loaded, SavingRuntime

_MODEL = "model.onnx"


class OnnxRuntimeCuda:
    name, title = "onnxruntime_cuda", "ONNX Runtime on CUDA"

    def unsupported(self, target: TargetConfig) -> str:
        return "is for CUDA devices" if target.kind != "cuda" else missing_provider()

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return cuda_variants(target)

    def versions(self) -> Mapping[str, str]:
        """Libraries that choose its kernels decide what runs, too."""
        if missing_provider():
            return {}
        return {name: found for name in PACKAGES if (found := installed_version(name))}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        """Shapes are fixed where they can be: a CUDA graph has no others."""
        if settings.get(PRECISION) == FLOAT16:
            # Loads what converts, which no process that measures needs.
            from tunegate.edges.reference.float16_model import save_float16  # noqa: PLC0415

            save_float16(model, directory / _MODEL)
            return _MODEL
        if model.weights is not None or model.unfixable:
            model.copy_to(directory / _MODEL)
        else:
            shutil.copyfile(model.fixed, directory / _MODEL)
        return _MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.runtimes.onnxruntime_cuda.model import CudaModel  # noqa: PLC0415

        return CudaModel(directory, artifact)


RUNTIME: SavingRuntime = OnnxRuntimeCuda()
