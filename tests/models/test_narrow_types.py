"""Types that NumPy lacks, in and out of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tunegate.models import narrow_types
from tunegate.models.inputs.given_values import array_misfit
from tunegate.models.narrow_types import dtype_named, kind_of, limits_of
from tunegate.models.prepared import Tensor
from tunegate.models.seeded_inputs import load_value, save_value, seeded_inputs
from tunegate.system.output.artifact_file import ArtifactTensor

TYPES = {
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
}


def cast_model(before: int, after: int, rows: int = 3) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=after)],
        "g",
        [helper.make_tensor_value_info("x", before, [rows, 5])],
        [helper.make_tensor_value_info("y", after, [rows, 5])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("name", TYPES)
def test_an_output_has_its_own_type_and_its_own_numbers(name: str) -> None:
    session = session_of(cast_model(TensorProto.FLOAT, TYPES[name]))
    x = np.arange(15, dtype=np.float32).reshape(3, 5) / 2 - (0 if name == "uint4" else 4)
    (found,) = narrow_types.run(session, {"x": np.trunc(x)})
    assert str(found.dtype) == name
    wanted = np.trunc(x).astype(dtype_named(name)).astype(np.float32)
    np.testing.assert_array_equal(found.astype(np.float32), wanted)


@pytest.mark.parametrize("name", TYPES)
def test_an_input_reaches_the_model_as_it_is(name: str) -> None:
    session = session_of(cast_model(TYPES[name], TensorProto.FLOAT))
    tensor = ArtifactTensor("x", (3, 5), name)
    feed = seeded_inputs([tensor], 3)
    (found,) = narrow_types.run(session, feed)
    assert len(np.unique(found)) > 1
    np.testing.assert_array_equal(found, feed["x"].astype(np.float32))
    assert narrow_types.bound(session, feed)() is not None


def test_an_odd_number_of_values_of_half_a_byte_and_none_at_all() -> None:
    for rows in (1, 0):
        session = session_of(cast_model(TensorProto.INT4, TensorProto.INT4, rows))
        x = np.full((rows, 5), -3, ml_dtypes.int4)
        (found,) = narrow_types.run(session, {"x": x})
        np.testing.assert_array_equal(found.astype(np.int8), x.astype(np.int8))


def test_kinds_and_limits_are_those_of_numbers() -> None:
    assert [kind_of(dtype_named(name)) for name in TYPES] == ["f", "f", "f", "i", "u"]
    assert [kind_of(np.dtype(name)) for name in ("float32", "int8", "bool", "O")] == [*"fibO"]
    assert limits_of(dtype_named("int4")) == (-8, 7)
    assert limits_of(dtype_named("uint4")) == (0, 15)
    assert limits_of(np.dtype("int8")) == (-128, 127)


def test_a_file_of_a_wider_type_stands_for_one_that_numpy_cannot_name() -> None:
    for name, wider in [("bfloat16", "float32"), ("int4", "int8"), ("uint4", "uint8")]:
        tensor = Tensor("x", (2,), name)
        assert array_misfit(np.zeros(2, wider), tensor) == ""
        assert array_misfit(np.zeros(2, "float64"), tensor) == f"type float64 instead of {name}"
    assert array_misfit(np.zeros(2, "V2"), Tensor("x", (2,), "bfloat16")) == ""
    assert array_misfit(np.zeros(2, "int8"), Tensor("x", (2,), "int32")) != ""


@pytest.mark.parametrize("name", TYPES)
def test_given_values_come_back_from_a_file(name: str, tmp_path: Path) -> None:
    array = np.arange(6).astype(dtype_named(name))
    found = load_value(save_value(array, tmp_path / "x"), dtype_named(name))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.astype(np.float32), array.astype(np.float32))
