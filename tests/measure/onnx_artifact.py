"""Artifacts of small models for ONNX Runtime, to be measured against each other."""

from pathlib import Path

import onnx

from tests.support.small_onnx import save
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor


def artifact(
    directory: Path, model: onnx.ModelProto, shape: tuple[int, ...], input_name: str = "x"
) -> Path:
    save(model, directory / "model.onnx")
    tensor = ArtifactTensor(input_name, shape, "float32")
    ArtifactFile(
        runtime="onnxruntime", file="model.onnx", inputs=(tensor,), outputs=(), threads=1
    ).write(directory)
    return directory
