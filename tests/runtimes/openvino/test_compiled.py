"""What OpenVINO is told, and what of its refusals is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import matmul_model, save
from tunegate.errors import UnsupportedModelError
from tunegate.system.output.artifact_file import ArtifactTensor

pytestmark = pytest.mark.pipelines
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
    from tunegate.runtimes.openvino.model import compiled, settings_of  # noqa: PLC0415

    file = save(matmul_model(rows="n"), tmp_path / "m.onnx")
    found = compiled(file, INPUT, settings_of({}, 1))
    assert found.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"
    assert list(found.inputs[0].shape) == [4, 16]
    assert found.get_property("INFERENCE_NUM_THREADS") == 1


def test_what_it_cannot_take_is_told_in_one_line(tmp_path: Path) -> None:
    from tunegate.runtimes.openvino.model import compiled, settings_of  # noqa: PLC0415

    node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[2.0], offset=[0.0])
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 16]) for n in ("x", "y")]
    graph = helper.make_graph([node], "g", tensors[:1], tensors[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    file = save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedModelError, match=r"^OpenVINO has no ai\.onnx\.ml\.Scaler$"):
        compiled(file, INPUT, settings_of({}, 1))
