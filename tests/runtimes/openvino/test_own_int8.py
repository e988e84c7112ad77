"""Models quantized by NNCF, written by the child that builds them."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

from tests.support.models.inexact import STATIC, quantized
from tests.support.small_onnx import conv_model, one_node_model, save
from tunegate.artifacts.inputs import InputRule, KnownInputs, Uniform
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.build_messages import Refused, WrittenBuild
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.loading import median_times
from tunegate.runtimes.openvino.runtime import RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile

pytestmark = pytest.mark.pipelines
OWN = STATIC | {"quantizer": "nncf"}
RULES = {"x": InputRule(Uniform(-1.0, 1.0))}
pytest.importorskip("nncf", reason="NNCF is not installed: pip install 'tunegate[nncf]'")


def reply(root: Path, model: onnx.ModelProto) -> WrittenBuild | Refused:
    return quantized(root, model, ("openvino", "int8.nncf", OWN), (10, 11, 12), RULES)


def test_a_convolution_is_quantized_with_its_error_told_and_its_name_kept(tmp_path: Path) -> None:
    written = reply(tmp_path, conv_model(size=64, name="stem"))
    assert isinstance(written, WrittenBuild), written
    assert written.sampled is not None
    assert all(0 < each < 0.05 for each in written.sampled.relative)
    artifact = ArtifactFile.read(tmp_path / "artifact")
    feed = {"x": np.ones((1, 8, 64, 64), "float32")}
    found = median_times(RUNTIME.load(tmp_path / "artifact", artifact), feed, 3)
    assert "stem" in found


def test_equal_models_have_equal_builds(tmp_path: Path) -> None:
    """Each in a process of its own: OpenVINO numbers what it names by itself."""
    file = save(conv_model(), tmp_path / "m.onnx")
    job = BuildJob(
        model=ModelJob(
            file=file,
            path="m.onnx",
            shapes={},
            target=TargetConfig(name="cpu", threads=1),
            inputs=KnownInputs(given=RULES),
        ),
        records={},
        sources={},
        directory=tmp_path / "a",
        variant="int8.nncf",
        settings=OWN,
        samples=3,
    )
    other = msgspec.structs.replace(job, directory=tmp_path / "b")
    builds = SavingBuilder(RUNTIME, tmp_path / "scratch", seed=1).build([job, other])
    assert [build.error for build in builds] == [None, None]
    assert len({build.key for build in builds}) == 1


def test_a_model_with_nothing_to_quantize_says_so(tmp_path: Path) -> None:
    refused = reply(tmp_path, one_node_model("Relu"))
    assert isinstance(refused, Refused)
    assert refused.reason == (
        "models/m.onnx: OpenVINO does not offer int8: "
        "it has no convolution and no matrix product to quantize."
    )
