from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.edges.onnx_prepare import prepare
from tunegate.errors import ModelError


def test_a_static_model_keeps_its_inputs_and_drops_what_the_optimizer_adds(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")
    assert [(t.name, t.shape, t.dtype) for t in prepared.inputs] == [("x", (1, 8, 8, 8), "float32")]
    assert [i.name for i in onnx.load(prepared.optimized).graph.input] == ["x"]


def test_a_dynamic_dimension_takes_its_size_from_the_config(tmp_path: Path) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={"x": (5, 16)}, into=tmp_path / "p", path="m.onnx")
    assert prepared.inputs[0].shape == (5, 16)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, 'm.onnx: dimension "batch" (axis 0) of input x is dynamic. Give the whole shape'),
        ({"x": (5,)}, "m.onnx: inputs.x has 1 numbers, the model's has 2 dimensions"),
        ({"x": (5, 17)}, "m.onnx: inputs.x: axis 1 is 16 in the model, not 17"),
        ({"z": (5, 16)}, "m.onnx: inputs.z: the model has no such input; it has x"),
    ],
)
def test_a_shape_that_cannot_be_used_is_named(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    with pytest.raises(ModelError) as caught:
        prepare(file, shapes=shapes, into=tmp_path / "p", path="m.onnx")
    assert message in str(caught.value)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ModelError, match=r"models/m\.onnx: not a valid ONNX model"):
        prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")


def test_an_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    model = one_node_model("Frobnicate")
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"m\.onnx: .*Frobnicate"):
        prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
