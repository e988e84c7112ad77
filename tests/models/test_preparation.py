from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.support.models.unusual import BRANCHES, model
from tests.support.prepared_models import prepared_model
from tests.support.small_onnx import conv_model, matmul_model, model_of, one_node_model, save, typed
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models import narrow_types
from tunegate.models.inputs.given_values import array_misfit
from tunegate.models.narrow_types import dtype_named, kind_of, limits_of
from tunegate.models.preparation import prepare
from tunegate.models.prepared import OPEN, Tensor
from tunegate.models.seeded_inputs import load_value, save_value, seeded_inputs
from tunegate.system.output.artifact_file import ArtifactTensor


def test_a_static_model_keeps_its_inputs_and_drops_what_the_optimizer_adds(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")
    assert [(t.name, t.shape, t.dtype) for t in prepared.inputs] == [("x", (1, 8, 8, 8), "float32")]
    assert [i.name for i in onnx.load(prepared.optimized).graph.input] == ["x"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, 'm.onnx: dimension "batch" (axis 0 of x) is dynamic. Give its size under dims'),
        ({"x": (5,)}, "m.onnx: inputs.x has 1 numbers, the model's has 2 dimensions"),
        ({"x": (5, 17)}, "m.onnx: inputs.x: axis 1 is 16 in the model, not 17"),
        ({"z": (5, 16)}, "m.onnx: inputs.z: the model has no such input; it has x"),
    ],
)
def test_a_shape_that_cannot_be_used_is_named(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(ModelError) as caught:
        prepared_model(matmul_model(rows="batch"), tmp_path, **shapes)
    assert message in str(caught.value)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ModelError, match=r"models/m\.onnx: not a valid ONNX model"):
        prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")


def test_a_model_that_is_not_read_says_what_to_change(tmp_path: Path) -> None:
    """Most need no export: it would have as many values, or lack the same data."""
    wide, lone = one_node_model("Sum"), matmul_model()
    wide.graph.node[0].input[:] = ["x"] * 20_001
    onnx.external_data_helper.set_external_data(lone.graph.initializer[0], "w.bin")
    lone.graph.initializer[0].ClearField("raw_data")
    silent, odd = one_node_model("Relu"), one_node_model("Relu")
    del silent.graph.output[:]
    odd.graph.input[0].type.tensor_type.elem_type = 99
    advice = {
        "split it into several nodes.": wide,
        "commit it, or pull it with Git LFS.": lone,
        "it has no output, so nothing of it can be compared: give it one.": silent,
        "input x has the element type 99, which ONNX does not have. Export it again.": odd,
    }
    for end, made in advice.items():
        with pytest.raises(ModelError) as caught:
            prepared_model(made, tmp_path)
        assert str(caught.value).startswith("m.onnx: ")
        assert str(caught.value).endswith(end)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"models/m\.onnx: its file m\.onnx is missing"):
        prepare(tmp_path / "m.onnx", shapes={}, into=tmp_path / "p", path="models/m.onnx")


def test_the_original_is_the_file_itself_whatever_compilers_need(tmp_path: Path) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={"x": (5, 16)}, into=tmp_path / "p", path="m.onnx")
    assert (prepared.original, prepared.weights) == (file, None)
    assert not (tmp_path / "p").exists()
    assert onnx.load(prepared.fixed).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 5


def test_a_model_broken_by_static_shapes_has_inputs_and_no_compilers_file(tmp_path: Path) -> None:
    prepared = prepared_model(model(BRANCHES), tmp_path, x=(1, 8))
    expected = [("x", (1, 8), "float32"), ("rate", (), "int64")]
    assert [(t.name, t.shape, t.dtype) for t in prepared.inputs] == expected
    assert prepared.unfixable.startswith("m.onnx: it cannot be given static shapes")
    assert "Incompatible dimensions for matrix multiplication" in prepared.unfixable
    for made in ("fixed", "optimized"):
        with pytest.raises(UnsupportedModelError, match="it cannot be given static shapes"):
            getattr(prepared, made)


def test_trees_are_refused_before_anything_is_made_of_them(tmp_path: Path) -> None:
    """A forest has a number for each of its nodes, half a million as scikit-learn makes it."""
    model = one_node_model("Relu")
    node = model.graph.node[0]
    node.name, node.op_type, node.domain = "forest", "TreeEnsembleClassifier", "ai.onnx.ml"
    prepared = prepared_model(model, tmp_path)
    assert prepared.unfixable == (
        'm.onnx: operator TreeEnsembleClassifier (node "forest") is not supported by the compiler.'
    )
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("ir_version", "said"),
    [(3, ""), (99, "m.onnx: ONNX Runtime does not load it (Unsupported model IR version: 99")],
)
def test_a_version_that_onnx_does_not_know_is_for_the_runtimes_to_judge(
    tmp_path: Path, ir_version: int, said: str
) -> None:
    proto = conv_model()
    proto.ir_version = ir_version
    prepared = prepared_model(proto, tmp_path)
    assert [tensor.name for tensor in prepared.inputs] == ["x"]
    assert prepared.unfixable.startswith(said)
    assert bool(prepared.unfixable) == bool(said)


def test_weights_in_files_beside_the_model_reach_the_compiler(tmp_path: Path) -> None:
    proto = conv_model()
    expected = onnx.numpy_helper.to_array(proto.graph.initializer[0])
    file = tmp_path / "m" / "m.onnx"
    file.parent.mkdir()
    onnx.save(proto, file, save_as_external_data=True, location="m.data", size_threshold=0)
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    assert prepared.weights is None
    onnxruntime.InferenceSession(prepared.original)
    weights = {t.name: t for t in onnx.load(prepared.optimized).graph.initializer}
    np.testing.assert_array_equal(
        onnx.numpy_helper.to_array(weights[proto.graph.initializer[0].name]), expected
    )


@pytest.mark.parametrize("length", [{}, {"length": "0"}])
def test_a_tensor_without_a_length_ends_where_its_shape_does(
    tmp_path: Path, length: dict[str, str]
) -> None:
    """ONNX Runtime reads it so, whatever follows in the data file."""
    tensor = onnx.TensorProto(
        name="w", data_type=TensorProto.INT4, dims=[3], data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": "w.bin", "offset": "1", **length}.items():
        tensor.external_data.add(key=key, value=value)
    proto = model_of([helper.make_node("Shape", ["w"], ["y"])], {}, {"y": [1]})
    proto.graph.initializer.append(tensor)
    (tmp_path / "w.bin").write_bytes(bytes(range(9)))
    prepared = prepared_model(proto, tmp_path)
    assert onnx.load(prepared.original).graph.initializer[0].raw_data == b"\1\2"


def test_a_map_cannot_be_given(tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    kind = onnx.TypeProto(map_type={"key_type": onnx.TensorProto.STRING, "value_type": tensor})
    given = onnx.helper.make_value_info("words", onnx.helper.make_sequence_type_proto(kind))
    with pytest.raises(ModelError, match=r"^m\.onnx: input words is of the kind sequence of map,"):
        prepared_model(_of_input(given, "SequenceLength"), tmp_path)


def test_a_sequence_has_the_shape_of_its_tensors_and_nothing_for_compilers(tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n", 2])
    parts = onnx.helper.make_value_info("parts", onnx.helper.make_sequence_type_proto(tensor))
    file = save(_of_input(parts, "SequenceLength"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    assert prepared.inputs == (Tensor("parts", (OPEN, 2), "float32", "sequence"),)
    assert prepared.unfixable == (
        "m.onnx: input parts is of the kind sequence of tensor: only ONNX Runtime can be given one."
    )
    given = prepare(file, shapes={"parts": (5, 2)}, into=tmp_path / "p", path="m.onnx")
    assert given.inputs == (Tensor("parts", (5, 2), "float32", "sequence"),)


def test_texts_reach_no_compiler(tmp_path: Path) -> None:
    model = one_node_model("Identity")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.STRING
    prepared = prepared_model(model, tmp_path)
    assert prepared.unfixable == (
        "m.onnx: input x has texts: only ONNX Runtime can be given these."
    )


def _of_input(given: onnx.ValueInfoProto, op_type: str) -> onnx.ModelProto:
    made = onnx.helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [])
    node = onnx.helper.make_node(op_type, [given.name], ["n"])
    return onnx.helper.make_model(onnx.helper.make_graph([node], "g", [given], [made]))


FLOAT = onnx.TensorProto.FLOAT


def test_an_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    prepared = prepared_model(one_node_model("Frobnicate"), tmp_path)
    assert prepared.unfixable == (
        'm.onnx: operator Frobnicate (node "odd") is not supported by the compiler.'
    )


def test_sums_become_chains_of_additions_with_the_same_result(tmp_path: Path) -> None:
    shape = [2, 3]
    nodes = [
        helper.make_node("Sum", ["a", "b", "c"], ["three"], name="s3"),
        helper.make_node("Sum", ["three"], ["one"], name="s1"),
        helper.make_node("Sum", ["one", "a"], ["y"], name="s2"),
    ]
    prepared = prepared_model(model_of(nodes, dict.fromkeys("abc", shape), {"y": shape}), tmp_path)
    assert {n.op_type for n in onnx.load(prepared.optimized).graph.node} <= {"Add", "Identity"}
    feed = {n: np.random.default_rng(0).random(shape, dtype=np.float32) for n in "abc"}
    results = [
        onnxruntime.InferenceSession(str(file)).run(None, feed)[0]
        for file in (prepared.fixed, prepared.optimized)
    ]
    np.testing.assert_array_equal(*results)


# Types that NumPy lacks, in and out of ONNX Runtime.

TYPES = {
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
}


def cast_model(before: int, after: int, rows: int = 3) -> onnx.ModelProto:
    return model_of(
        [helper.make_node("Cast", ["x"], ["y"], to=after)],
        {"x": typed(before, [rows, 5])},
        {"y": typed(after, [rows, 5])},
        opset=21,
    )


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
    feed = seeded_inputs([ArtifactTensor("x", (3, 5), name)], 3)
    (found,) = narrow_types.run(session, feed)
    assert len(np.unique(found)) > 1
    np.testing.assert_array_equal(found, feed["x"].astype(np.float32))
    assert narrow_types.bind_inference(session, feed)() is not None


def test_an_odd_number_of_values_of_half_a_byte_and_none_at_all() -> None:
    for rows in (1, 0):
        session = session_of(cast_model(TensorProto.INT4, TensorProto.INT4, rows))
        x = np.full((rows, 5), -3, ml_dtypes.int4)
        (found,) = narrow_types.run(session, {"x": x})
        np.testing.assert_array_equal(found.astype(np.int8), x.astype(np.int8))


def test_a_single_number_beside_a_narrow_type_has_no_axis() -> None:
    node = helper.make_node("CastLike", ["x", "like"], ["y"])
    inputs = {"x": [], "like": typed(TensorProto.BFLOAT16, [1])}
    model = model_of([node], inputs, {"y": typed(TensorProto.BFLOAT16, [])}, opset=21)
    feed = {"x": np.array(3, np.float32), "like": np.ones(1, dtype_named("bfloat16"))}
    (found,) = narrow_types.run(session_of(model), feed)
    assert found.shape == ()


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
