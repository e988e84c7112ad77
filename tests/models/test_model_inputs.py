from __future__ import annotations

from pathlib import Path

import msgspec
import onnx
from onnx import TensorProto, helper

from tests.support.measured_cells import make_changes
from tests.support.small_onnx import matmul_model, save
from tunegate.artifacts.changes import ModelChange, ModelInput
from tunegate.config import Config, InputConfig, Inputs, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.models.export_models import SaidOfLost, explain_lost_inputs
from tunegate.models.model_inputs import graph_inputs, inputs_of_file, model_input
from tunegate.review.input_shapes import ResolvedShapes


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


(CHANGE,) = make_changes().models
X = ModelInput("x", (None,), ("seq",))
INPUTS = (X, ModelInput("mask", (None,), ("n",)))
VALUES = ValuesConfig(low=0, high=1)


def said(config: Config | None, change: ModelChange = CHANGE, **wanted: int) -> SaidOfLost:
    shapes = ResolvedShapes(shapes={name: (size,) for name, size in wanted.items()})
    return explain_lost_inputs(config, change, INPUTS, {"mask"}, shapes)


def of_profiles(**profiles: int) -> Config:
    named = {name: ProfileConfig(dims={"seq": size, "n": size}) for name, size in profiles.items()}
    return Config(models=(ModelConfig(path="**", profiles=named),))


def test_the_base_says_the_shapes_and_values_of_what_only_it_has() -> None:
    given: Inputs = {"x": (4,), "mask": InputConfig(shape=(4,), values=VALUES)}
    config = Config(models=(ModelConfig(path="**", inputs=given),))
    assert said(config) == SaidOfLost({"mask": (4,)}, {"mask": VALUES})


def test_nothing_is_said_without_a_configuration_or_a_base() -> None:
    config = Config(models=(ModelConfig(path="**"),), dims={"seq": 1, "n": 1})
    assert said(None) == SaidOfLost()
    assert said(config, msgspec.structs.replace(CHANGE, base=None)) == SaidOfLost()
    assert said(config).shapes == {"mask": (1,)}


def test_the_profile_of_the_same_name_says_it() -> None:
    long = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@long")
    assert said(of_profiles(short=4, long=64), long).shapes == {"mask": (64,)}


def test_a_profile_that_is_called_otherwise_now_is_found_by_its_shapes() -> None:
    tall = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@tall")
    assert said(of_profiles(short=4, long=64), tall, x=64).shapes == {"mask": (64,)}
    assert said(of_profiles(short=4, long=64), tall, x=9) == SaidOfLost()
