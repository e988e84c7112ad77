from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support.small_onnx import conv_model, save
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.static_int8 import save_static
from tunegate.runtimes.tensorrt import runtime
from tunegate.runtimes.tensorrt.runtime import RUNTIME

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedModel:
    file = save(conv_model(), tmp_path / "m.onnx")
    return prepare(file, shapes={}, into=tmp_path / "into", path="m.onnx")


def test_it_is_for_cuda() -> None:
    assert RUNTIME.unsupported(CPU) == "is for CUDA devices"


@pytest.mark.parametrize("missing", ["tensorrt", "cuda.bindings"])
def test_what_is_not_installed_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None if name == missing else object())
    assert RUNTIME.unsupported(GPU) == f"needs {missing}: pip install 'tunegate[tensorrt]'"


def test_where_it_is_not_installed_it_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    assert dict(RUNTIME.versions()) == {}


def test_int8_is_offered_with_given_values_alone() -> None:
    found = RUNTIME.variants(GPU)["int8"]
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
