from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.measured_cells import make_changes
from tunegate.artifacts import inputs as rules
from tunegate.artifacts.changes import ModelChange, ModelInput
from tunegate.config import Config, InputConfig, Inputs, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.models.model_inputs import model_input
from tunegate.models.seeded_inputs import cases_of, seeded_inputs
from tunegate.review.input_shapes import ResolvedShapes
from tunegate.review.side_settings import LostSettings, settings_of_lost


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: rules.InputRule | None = None
    form: rules.InputForm = ""


TENSORS = (Tensor("x", (50, 40), "float32"), Tensor("ids", (200,), "int64"))


def test_one_seed_gives_one_set_of_arrays() -> None:
    first, again, other = (seeded_inputs(TENSORS, seed) for seed in (1, 1, 2))
    for name in ("x", "ids"):
        assert np.array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_integers_are_valid_indices_of_any_table(dtype: str) -> None:
    (values,) = seeded_inputs([Tensor("i", (300,), dtype)], 1).values()
    assert values.dtype == np.dtype(dtype)
    assert set(values.tolist()) == {0, 1}


def _drawn(
    values: rules.Drawn, shape: tuple[int, ...] = (400,), dtype: str = "int64"
) -> np.ndarray:
    (array,) = seeded_inputs([Tensor("x", shape, dtype, rules.InputRule(values))], 3).values()
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    return np.asarray(array)


def test_a_rule_of_standard_floats_draws_what_no_rule_does() -> None:
    (plain,) = seeded_inputs([Tensor("x", (50,), "float32")], 3).values()
    assert np.array_equal(plain, _drawn(rules.Normal(), (50,), "float32"))


def test_the_bytes_of_plain_floats_are_those_of_numpys_generator() -> None:
    (plain,) = seeded_inputs([Tensor("x", (3, 2), "float32")], 42).values()
    expected = np.random.default_rng(42).standard_normal((3, 2)).astype("float32")
    assert plain.tobytes() == expected.tobytes()


def test_floats_lie_within_their_range_and_around_their_mean() -> None:
    uniform = _drawn(rules.Uniform(2.0, 5.0), dtype="float32")
    assert (uniform.min() >= 2.0, uniform.max() <= 5.0) == (True, True)
    assert abs(_drawn(rules.Normal(100.0, 2.0), dtype="float64").mean() - 100.0) < 0.5


def test_texts_are_chosen_and_joined() -> None:
    assert {*_drawn(rules.OneOf(("a", "b")), dtype="object").tolist()} == {"a", "b"}
    text = _drawn(rules.OneOf(("a", "b"), words=3), (1,), "object")[0]
    assert [len(word) for word in text.split(" ")] == [1, 1, 1]


def test_each_column_has_its_own_values() -> None:
    parts = (rules.Constant(7), rules.Integers(0, 1), rules.OneOf((100, 200)))
    columns = _drawn(rules.Columns(1, parts), (50, 3))
    assert {*columns[:, 0].tolist()} == {7}
    assert {*columns[:, 1].tolist()} == {0, 1}
    assert {*columns[:, 2].tolist()} == {100, 200}


def test_all_inputs_take_the_same_case(tmp_path: Path) -> None:
    tensors = []
    for name in ("x", "z"):
        files = tuple(str(tmp_path / f"{name}{case}.npy") for case in range(3))
        for case, file in enumerate(files):
            np.save(file, np.full(2, case))
        tensors.append(Tensor(name, (2,), "int64", rules.InputRule(rules.Files(files))))
    assert cases_of(tensors) == 3
    drawn = [seeded_inputs(tensors, seed) for seed in range(6)]
    assert [each["x"].tolist() for each in drawn] == [each["z"].tolist() for each in drawn]
    assert {int(each["x"][0]) for each in drawn} == {0, 1, 2}
    assert seeded_inputs(tensors, 0, case=2)["x"].tolist() == [2, 2]


def test_an_input_may_have_no_rank_or_be_no_tensor() -> None:
    assert not model_input(helper.make_tensor_value_info("x", TensorProto.FLOAT, None)).is_ranked
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
    several = onnx.ValueInfoProto(name="s", type=helper.make_sequence_type_proto(tensor))
    assert model_input(several) == ModelInput("s", (1,), is_several=True)
    entries = onnx.TypeProto(map_type={"key_type": TensorProto.STRING, "value_type": tensor})
    assert model_input(onnx.ValueInfoProto(name="m", type=entries)) == ModelInput("m", ())


def test_a_size_of_0_is_one_that_the_model_says() -> None:
    value = helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [0, 4, "n", -1])
    assert model_input(value).dimensions == (0, 4, None, None)


(CHANGE,) = make_changes().models
X = ModelInput("x", (None,), ("seq",))
INPUTS = (X, ModelInput("mask", (None,), ("n",)))
VALUES = ValuesConfig(low=0, high=1)


def settings(config: Config | None, change: ModelChange = CHANGE, **wanted: int) -> LostSettings:
    shapes = ResolvedShapes(shapes={name: (size,) for name, size in wanted.items()})
    return settings_of_lost(config, change, INPUTS, {"mask"}, shapes)


def of_profiles(**profiles: int) -> Config:
    named = {name: ProfileConfig(dims={"seq": size, "n": size}) for name, size in profiles.items()}
    return Config(models=(ModelConfig(path="**", profiles=named),))


def test_the_base_says_the_shapes_and_values_of_what_only_it_has() -> None:
    given: Inputs = {"x": (4,), "mask": InputConfig(shape=(4,), values=VALUES)}
    config = Config(models=(ModelConfig(path="**", inputs=given),))
    assert settings(config) == LostSettings({"mask": (4,)}, {"mask": VALUES})


def test_nothing_is_said_without_a_configuration_or_a_base() -> None:
    config = Config(models=(ModelConfig(path="**"),), dims={"seq": 1, "n": 1})
    assert settings(None) == LostSettings()
    assert settings(config, msgspec.structs.replace(CHANGE, base=None)) == LostSettings()
    assert settings(config).shapes == {"mask": (1,)}


def test_the_profile_of_the_same_name_says_it() -> None:
    long = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@long")
    assert settings(of_profiles(short=4, long=64), long).shapes == {"mask": (64,)}


def test_a_profile_that_is_called_otherwise_now_is_found_by_its_shapes() -> None:
    tall = msgspec.structs.replace(CHANGE, path=f"{CHANGE.path}@tall")
    assert settings(of_profiles(short=4, long=64), tall, x=64).shapes == {"mask": (64,)}
    assert settings(of_profiles(short=4, long=64), tall, x=9) == LostSettings()
