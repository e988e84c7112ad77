import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.small_onnx import conv_model, save
from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.static_int8 import save_static
from tunegate.runtimes.tensorrt import runtime
from tunegate.runtimes.tensorrt import runtime as build_turn
from tunegate.system.nvidia.gpus import visible_gpus

GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedModel:
    file = save(conv_model(), tmp_path / "m.onnx")
    return prepare(file, shapes={}, into=tmp_path / "into", path="m.onnx")


@pytest.mark.parametrize("missing", ["tensorrt", "cuda.bindings"])
def test_what_is_not_installed_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None if name == missing else object())
    assert runtime.RUNTIME.unsupported(GPU) == f"needs {missing}: pip install 'tunegate[tensorrt]'"


def test_int8_is_offered_with_given_values_alone() -> None:
    found = runtime.RUNTIME.variants(GPU)["int8"]
    assert (found["precision"], found["quantization"]) == ("int8", "static")


def test_int8_of_tensor_cores_is_symmetric_and_leaves_biases_in_float32(
    prepared: PreparedModel, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    shapes = {each.name: each.shape for each in prepared.inputs}
    feeds = [{n: rng.random(s, np.float32) for n, s in shapes.items()} for _ in range(4)]
    given = PreparedModel(**{**vars(prepared), "calibration": feeds})
    save_static(given, tmp_path / "int8.onnx", is_symmetric=True)
    graph = onnx.load(tmp_path / "int8.onnx").graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    pairs = [each for each in graph.node if each.op_type.endswith("DequantizeLinear")]
    pairs += [each for each in graph.node if each.op_type == "QuantizeLinear"]
    assert pairs
    for node in pairs:
        zero = constants[node.input[2]]
        assert zero.dtype == np.int8
        assert not zero.any()


def test_without_a_device_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_turn, "visible_gpus", tuple)
    with runtime.device_turn():
        pass


# What CUDA's runtime says where there is no device.


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
def test_without_a_device_memory_is_an_error_in_cudas_words() -> None:
    pytest.importorskip("cuda.bindings")
    from tunegate.runtimes.tensorrt.device_memory import DeviceArray  # noqa: PLC0415

    with pytest.raises(EnvironmentUnfitError, match=r"^CUDA says: "):
        DeviceArray((2, 2), "float32")


# Layers of an engine by the user's nodes, from an engine's own JSON.

CONV = "/conv1/Conv + /relu/Relu"
CHANGE = f"Reformatting CopyNode for Input Tensor 0 to {CONV}"
FUSED = "__myl_MulAddCast_myl0_3"
TOLD = json.dumps(
    {
        "Layers": [
            {"Name": CHANGE, "LayerType": "Reformat", "Metadata": ""},
            {
                "Name": CONV,
                "LayerType": "CaskConvolution",
                "Metadata": "[ONNX Layer: /conv1/Conv]\x1e[ONNX Layer: /relu/Relu]",
            },
            {"Name": FUSED, "LayerType": "kgen", "Metadata": "[ONNX Layer: /attn/MatMul]"},
            {"Name": "Reformatting CopyNode for Output Tensor 0 to head + act", "Metadata": ""},
            {"Name": "unknown + other", "LayerType": "Reformat"},
        ],
        "I/O Tensors": [],
    }
)


def test_a_layer_is_called_like_the_first_node_that_it_was_made_of() -> None:
    found = runtime.names_of_engine_layers(TOLD)
    assert found[CONV] == "/conv1/Conv"
    assert found[FUSED] == "/attn/MatMul"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([], "gives no reason"),
        (
            ["CUDA initialization failure with error: 35. Please check your CUDA installation"],
            (
                "does not start: CUDA initialization failure with error: 35. Please check your "
                "CUDA installation"
            ),
        ),
        (
            ["In node 3 with name: loop: No importer registered for op: Unique", "later"],
            (
                "does not take the model: In node 3 with name: loop: No importer registered for "
                "op: Unique"
            ),
        ),
        (
            ["IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any"],
            "does not take the model: Internal Error (Could not find any",
        ),
        (["x" * 400], "does not take the model: " + "x" * 175),
    ],
)
def test_the_first_error_is_told_in_one_line(said: list[str], told: str) -> None:
    assert runtime.engine_refusal(said) == told
