from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.small_onnx import conv_model, save
from tunegate.runtimes.openvino.model import onnx_names
from tunegate.runtimes.openvino.runtime import RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

pytestmark = pytest.mark.pipelines


def test_changes_of_layout_have_the_names_of_the_models_layers(tmp_path: Path) -> None:
    file = save(conv_model(size=64, name="stem"), tmp_path / "m.onnx")
    tensor = ArtifactTensor("x", (1, 8, 64, 64), "float32")
    artifact = ArtifactFile(
        runtime="openvino", file=file.name, inputs=(tensor,), outputs=(), threads=1
    )
    loaded = RUNTIME.load(tmp_path, artifact)
    found = loaded.operators_ms({"x": np.ones(tensor.shape, "float32")}, 3)
    assert set(found) <= onnx_names(onnx.load(file))
