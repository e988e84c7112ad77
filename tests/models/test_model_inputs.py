from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from tests.support.small_onnx import matmul_model, save
from tunegate.artifacts.changes import ModelInput
from tunegate.models.model_inputs import graph_inputs, inputs_of_file, model_input


def test_weights_that_are_listed_as_inputs_are_none() -> None:
    model = matmul_model(rows="batch")
    weight = model.graph.initializer[0]
    listed = helper.make_tensor_value_info(weight.name, TensorProto.FLOAT, weight.dims)
    model.graph.input.append(listed)
    assert graph_inputs(model.graph) == (
        ModelInput("x", (None, 16), ("batch", ""), dtype="float32"),
    )


def test_an_input_may_have_no_rank_or_be_no_tensor() -> None:
    free = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    assert not model_input(free).is_ranked
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    several = onnx.ValueInfoProto(name="s", type=helper.make_sequence_type_proto(tensor))
    assert model_input(several) == ModelInput("s", (1,), is_several=True)
    entries = onnx.TypeProto(map_type={"key_type": TensorProto.STRING, "value_type": tensor})
    assert model_input(onnx.ValueInfoProto(name="m", type=entries)) == ModelInput("m", ())


def test_a_size_of_0_is_one_that_the_model_says() -> None:
    value = helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [0, 4, "n", -1])
    assert model_input(value).dimensions == (0, 4, None, None)


def test_a_file_that_is_no_model_has_no_inputs_to_see(tmp_path: Path) -> None:
    good = save(matmul_model(), tmp_path / "m.onnx")
    assert inputs_of_file(good) == (ModelInput("x", (16, 16), dtype="float32"),)
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"not a model")
    assert inputs_of_file(bad) is None
