from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.small_onnx import conv_model, matmul_model, save
from tunegate.models.reference.session import ReferenceSession
from tunegate.runtimes.openvino.runtime import RUNTIME
from tunegate.runtimes.runtime import Loaded
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

pytestmark = pytest.mark.pipelines


def loaded(directory: Path, shape: tuple[int, ...], **settings: str) -> Loaded:
    tensor = ArtifactTensor("x", shape, "float32")
    artifact = ArtifactFile(
        runtime="openvino",
        file="m.onnx",
        inputs=(tensor,),
        outputs=(),
        threads=1,
        settings=settings,
    )
    return RUNTIME.load(directory, artifact)


def test_it_computes_what_the_reference_does_and_a_bound_inference_too(tmp_path: Path) -> None:
    file = save(matmul_model(), tmp_path / "m.onnx")
    feed = {"x": np.random.default_rng(0).standard_normal((16, 16)).astype("float32")}
    (expected,) = ReferenceSession(file).run(feed)
    model = loaded(tmp_path, (16, 16))
    (found,) = model.run(feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert model.bound(feed)() is not None


def test_operators_have_the_names_of_the_user(tmp_path: Path) -> None:
    save(conv_model(size=64, name="stem"), tmp_path / "m.onnx")
    feed = {"x": np.ones((1, 8, 64, 64), "float32")}
    found = loaded(tmp_path, (1, 8, 64, 64)).operators_ms(feed, 3)
    assert max(found, key=lambda name: found[name]) == "stem"
    assert all(milliseconds > 0 for milliseconds in found.values())


def test_its_maker_is_not_told_that_it_is_used() -> None:
    program = (
        "import sys; import tunegate.runtimes.openvino.library;"
        "print(sys.modules['openvino_telemetry'],"
        " [name for name in sys.modules if name.startswith('openvino_telemetry.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "None []\n"
