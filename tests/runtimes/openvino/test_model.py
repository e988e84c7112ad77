import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.measured_cells import make_job, make_model
from tests.support.models.inexact import STATIC, quantized
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.artifacts.inputs import InputRule, KnownInputs, Uniform
from tunegate.errors import UnsupportedModelError
from tunegate.models.reference.session import ReferenceSession
from tunegate.runtimes.builder import Refused, SavingBuilder, WrittenBuild
from tunegate.runtimes.loading import median_times
from tunegate.runtimes.openvino.layer_names import onnx_names
from tunegate.runtimes.openvino.runtime import RUNTIME
from tunegate.runtimes.runtime import Loaded
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

pytest.importorskip(
    "openvino", reason="OpenVINO is not installed: pip install 'tunegate[openvino]'"
)
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
    found = median_times(loaded(tmp_path, (1, 8, 64, 64)), feed, 3)
    assert max(found, key=lambda name: found[name]) == "stem"
    assert all(milliseconds > 0 for milliseconds in found.values())


def test_its_maker_is_not_told_that_it_is_used() -> None:
    program = (
        "import sys; import tunegate.runtimes.openvino.library;"
        "print(sys.modules['openvino_telemetry'],"
        " [name for name in sys.modules if name.startswith('openvino_telemetry.')])"
    )
    assert run_program([sys.executable, "-c", program], check=True).stdout == "None []\n"


def test_changes_of_layout_have_the_names_of_the_models_layers(tmp_path: Path) -> None:
    file = save(conv_model(size=64, name="stem"), tmp_path / "m.onnx")
    tensor = ArtifactTensor("x", (1, 8, 64, 64), "float32")
    artifact = ArtifactFile(
        runtime="openvino", file=file.name, inputs=(tensor,), outputs=(), threads=1
    )
    loaded = RUNTIME.load(tmp_path, artifact)
    found = median_times(loaded, {"x": np.ones(tensor.shape, "float32")}, 3)
    assert set(found) <= onnx_names(onnx.load(file))


# What OpenVINO is told, and what of its refusals is shown.

INPUT = (ArtifactTensor("x", (4, 16), "float32"),)


@pytest.mark.parametrize(
    ("settings", "precision"), [({}, "f32"), ({"precision": "bfloat16"}, "bf16")]
)
def test_precision_and_threads_are_always_told(settings: dict[str, str], precision: str) -> None:
    from tunegate.runtimes.openvino.model import settings_of  # noqa: PLC0415

    told = settings_of(settings, 2)
    assert told["INFERENCE_PRECISION_HINT"] == precision
    assert (told["INFERENCE_NUM_THREADS"], told["NUM_STREAMS"]) == (2, 1)
    assert told["ENABLE_CPU_PINNING"] is False
    assert "CACHE_DIR" not in told


def test_a_model_is_compiled_for_its_shapes_and_in_float32(tmp_path: Path) -> None:
    from tunegate.runtimes.openvino.model import compile_model, settings_of  # noqa: PLC0415

    file = save(matmul_model(rows="n"), tmp_path / "m.onnx")
    found = compile_model(file, INPUT, settings_of({}, 1))
    assert found.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"
    assert list(found.inputs[0].shape) == [4, 16]
    assert found.get_property("INFERENCE_NUM_THREADS") == 1


def test_what_it_cannot_take_is_told_in_one_line(tmp_path: Path) -> None:
    from tunegate.runtimes.openvino.model import compile_model, settings_of  # noqa: PLC0415

    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[2.0], offset=[0.0])
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 16]) for n in ("x", "y")]
    graph = helper.make_graph([node], "g", tensors[:1], tensors[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    file = save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedModelError, match=r"^OpenVINO has no ai\.onnx\.ml\.Scaler$"):
        compile_model(file, INPUT, settings_of({}, 1))


# Numbers that we quantize ourselves.


OWN = STATIC | {"quantizer": "nncf"}
RULES = {"x": InputRule(Uniform(-1.0, 1.0))}
needs_nncf = pytest.mark.skipif(
    find_spec("nncf") is None, reason="NNCF is not installed: pip install 'tunegate[nncf]'"
)


def reply(root: Path, model: onnx.ModelProto) -> WrittenBuild | Refused:
    return quantized(root, model, ("openvino", "int8.nncf", OWN), (10, 11, 12), RULES)


@needs_nncf
def test_a_convolution_is_quantized_with_its_error_told_and_its_name_kept(tmp_path: Path) -> None:
    written = reply(tmp_path, conv_model(size=64, name="stem"))
    assert isinstance(written, WrittenBuild), written
    assert written.sampled is not None
    assert all(0 < each < 0.05 for each in written.sampled.relative)
    artifact = ArtifactFile.read(tmp_path / "artifact")
    feed = {"x": np.ones((1, 8, 64, 64), "float32")}
    assert "stem" in median_times(RUNTIME.load(tmp_path / "artifact", artifact), feed, 3)


@needs_nncf
def test_equal_models_have_equal_builds(tmp_path: Path) -> None:
    """Each in a process of its own: OpenVINO numbers what it names by itself."""
    file = save(conv_model(), tmp_path / "m.onnx")
    model = make_model(file, inputs=KnownInputs(given=RULES))
    job = make_job(model, tmp_path / "a", variant="int8.nncf", settings=OWN, samples=3)
    other = msgspec.structs.replace(job, directory=tmp_path / "b")
    builds = SavingBuilder(RUNTIME, tmp_path / "scratch", seed=1).build([job, other])
    assert [build.error for build in builds] == [None, None]
    assert len({build.key for build in builds}) == 1


@needs_nncf
def test_a_model_with_nothing_to_quantize_says_so(tmp_path: Path) -> None:
    refused = reply(tmp_path, one_node_model("Relu"))
    assert isinstance(refused, Refused)
    assert refused.reason == (
        "models/m.onnx: OpenVINO does not offer int8: "
        "it has no convolution and no matrix product to quantize."
    )
