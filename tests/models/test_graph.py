"""Models with the same graph."""

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.models.external_data import lay_out, model_with_data
from tests.support.small_onnx import conv_model, matmul_model, save
from tunegate.artifacts.changes import ModelInput
from tunegate.errors import ModelError
from tunegate.models.graph import graph_digest, operator_of, outline_of
from tunegate.models.kernel_digest import kernel_digest, without_weights
from tunegate.models.light_models import seeded_light
from tunegate.models.preparation import DataFiles, take_in
from tunegate.system.onnx_scan import data_files


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_weights_do_not_count(one: int, other: int) -> None:
    assert digest(matmul_model(seed=one)) == digest(matmul_model(seed=other))


@given(st.integers(1, 20), st.integers(1, 20))
def test_the_shapes_of_weights_count(one: int, other: int) -> None:
    same = digest(matmul_model(inner=one)) == digest(matmul_model(inner=other))
    assert same == (one == other)


def test_an_attribute_an_operator_and_the_opset_count() -> None:
    models = [conv_model() for _ in range(4)]
    models[0].graph.node[0].attribute[0].ints[:] = [0, 0, 2, 2]
    models[1].graph.node[1].op_type = "Sigmoid"
    models[2].opset_import[0].version = 18
    assert len({digest(model) for model in models}) == 4


def test_a_dimension_of_an_input_counts() -> None:
    assert digest(matmul_model(rows="n")) != digest(matmul_model(rows=16))


def test_who_made_it_and_what_is_said_of_it_do_not_count() -> None:
    model = conv_model()
    model.producer_name, model.producer_version, model.doc_string = "a", "2", "words"
    model.metadata_props.add(key="trained", value="today")
    model.graph.doc_string = model.graph.node[0].doc_string = "more words"
    assert digest(model) == digest(conv_model())


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=64))
def test_the_encoding_of_a_shape_does_not_count(values: list[int]) -> None:
    typed = helper.make_tensor("shape", TensorProto.INT64, [len(values)], values)
    raw = numpy_helper.from_array(np.array(values, np.int64), "shape")
    assert digest(reshape_model(typed)) == digest(reshape_model(raw))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=64), st.data())
def test_every_number_of_a_shape_counts(values: list[int], data: st.DataObject) -> None:
    other = list(values)
    other[data.draw(st.integers(0, len(values) - 1))] += 1
    assert digest(reshape_model(integers(values))) != digest(reshape_model(integers(other)))


def test_a_large_tensor_of_integers_is_weights_where_nothing_is_shaped_by_it() -> None:
    def table(value: int) -> onnx.ModelProto:
        return model_of([make_node("Add", ["x", "shape"], ["y"])], [integers([value] * 65)])

    assert digest(table(1)) == digest(table(2))
    assert digest(reshape_model(integers([1] * 65))) != digest(reshape_model(integers([2] * 65)))


@pytest.mark.parametrize("op_type", ["Cast", "Identity"])
def test_what_a_shape_is_computed_from_is_structure(op_type: str) -> None:
    def computed(value: float) -> onnx.ModelProto:
        nodes = [
            make_node("Mul", ["half", "half"], ["quarter"]),
            make_node(op_type, ["quarter"], ["shape"], to=TensorProto.INT64),
            make_node("Reshape", ["x", "shape"], ["y"]),
        ]
        return model_of(nodes, [floats([value], "half")])

    assert digest(computed(1.0)) != digest(computed(2.0))


def test_the_shape_of_a_weight_is_structure_and_its_numbers_are_not() -> None:
    def shaped(weight: float) -> onnx.ModelProto:
        nodes = [
            make_node("Add", ["x", "w"], ["sum"]),
            make_node("Shape", ["sum"], ["shape"]),
            make_node("Reshape", ["x", "shape"], ["y"]),
        ]
        return model_of(nodes, [floats([weight], "w")])

    assert digest(shaped(1.0)) == digest(shaped(2.0))


def test_what_a_loop_ends_by_is_structure() -> None:
    def loop(bound: float) -> onnx.ModelProto:
        nodes = [node("Add", "v step", "v2"), node("Less", "v2 bound", "again")]
        values = [helper.make_tensor_value_info(n, 1, [1]) for n in ("i", "c", "v")]
        made = [helper.make_tensor_value_info(n, 1, [1]) for n in ("again", "v2")]
        body = helper.make_graph(nodes, "body", values, made, [floats([bound], "bound")])
        return model_of([make_node("Loop", ["", "", "x"], ["y"], body=body)], [floats([1], "step")])

    assert digest(loop(10.0)) != digest(loop(20.0))


def test_what_a_function_makes_a_shape_of_is_structure() -> None:
    def shaped(value: float) -> onnx.ModelProto:
        inside = [
            make_node("Cast", ["formal"], ["shape"], to=TensorProto.INT64),
            make_node("Reshape", ["data", "shape"], ["made"]),
        ]
        model = model_of([node("shaped", "x w", "y", domain="own")], [floats([value], "w")])
        model.functions.append(function_of("shaped", "data formal", "made", inside))
        return model

    assert digest(shaped(1.0)) != digest(shaped(2.0))


def test_a_shape_in_a_data_file_is_structure_by_the_bytes_of_the_file() -> None:
    model = reshape_model(lay_out(integers([1, 2]), "w.bin")).SerializeToString()
    assert graph_digest(model, {"w.bin": "git:1"}) != graph_digest(model, {"w.bin": "git:2"})


def test_weights_in_a_data_file_are_not() -> None:
    model = model_with_data("w.bin")
    assert graph_digest(model, {"w.bin": "git:1"}) == graph_digest(model, {"w.bin": "git:2"})


@pytest.mark.parametrize("op_type", ["Resize", "Upsample"])
def test_what_scales_an_image_is_structure(op_type: str) -> None:
    assert digest(scaled_model(op_type, [1, 1, 2, 2])) != digest(
        scaled_model(op_type, [1, 1, 3, 3])
    )


def test_the_same_scale_as_a_constant_node_is_structure_too() -> None:
    two, three = (constant_model([1, 1, n, n]) for n in (2, 3))
    assert digest(two) != digest(three)


def test_weights_inside_a_branch_do_not_count_and_its_nodes_do() -> None:
    assert digest(branching_model("Add", 1.0)) == digest(branching_model("Add", 2.0))
    assert digest(branching_model("Add", 1.0)) != digest(branching_model("Mul", 1.0))


def test_weights_inside_a_function_do_not_count() -> None:
    assert digest(function_model(1.0)) == digest(function_model(2.0))


def test_where_the_weights_lie_does_not_count() -> None:
    assert graph_digest(model_with_data("w.bin")) == digest(matmul_model(seed=9))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "an ONNX file without a graph"),
        (b"#!/bin/sh\n", "not an ONNX file, or cut short"),
        (b"version https://git-lfs.github.com/spec/v1\n", "not an ONNX file, or cut short"),
        (conv_model().SerializeToString()[:-7], "not an ONNX file, or cut short"),
    ],
)
def test_a_damaged_file_is_said_to_be_one(content: bytes, problem: str) -> None:
    with pytest.raises(ModelError) as raised:
        graph_digest(content)
    assert str(raised.value) == problem


@given(st.data())
def test_a_file_cut_anywhere_is_never_taken_for_a_model(data: st.DataObject) -> None:
    whole = conv_model().SerializeToString()
    cut = data.draw(st.integers(0, len(whole) - 1))
    if cut > whole.index(b"Conv"):
        try:
            shortened = graph_digest(whole[:cut])
        except ModelError:
            return
        # Cut between two fields of the file, such as the graph and the opset.
        assert shortened != graph_digest(whole)


@given(st.binary(max_size=200))
def test_noise_is_a_model_error_or_a_digest_and_nothing_else(noise: bytes) -> None:
    try:
        told = graph_digest(noise)
    except ModelError as error:
        told = str(error)
    assert "ONNX file" in told or len(told) == 64


def test_a_tensor_whose_numbers_are_missing_is_a_model_error() -> None:
    tensor = integers([1, 2, 3])
    tensor.raw_data = tensor.raw_data[:-3]
    with pytest.raises(ModelError, match=r"^not a valid ONNX file: "):
        digest(reshape_model(tensor))


# ---------------------------------------------------------------------------------


def digest(model: onnx.ModelProto) -> str:
    return graph_digest(model.SerializeToString())


def integers(values: Sequence[int]) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), "shape")


def floats(values: Sequence[float], name: str) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.float32), name)


def model_of(
    nodes: Sequence[onnx.NodeProto], initializers: Sequence[TensorProto] = ()
) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], initializers))


def reshape_model(shape: TensorProto) -> onnx.ModelProto:
    return model_of([make_node("Reshape", ["x", "shape"], ["y"])], [shape])


def scaled_model(op_type: str, scales: Sequence[float]) -> onnx.ModelProto:
    inputs = ["x", "", "scales"] if op_type == "Resize" else ["x", "scales"]
    return model_of([make_node(op_type, inputs, ["y"])], [floats(scales, "scales")])


def constant_model(scales: Sequence[float]) -> onnx.ModelProto:
    constant = make_node("Constant", [], ["scales"], value=floats(scales, "unnamed"))
    return model_of([constant, make_node("Resize", ["x", "", "scales"], ["y"])])


def branching_model(op_type: str, weight: float) -> onnx.ModelProto:
    node = make_node(op_type, ["x", "w"], ["b"])
    output = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    branch = helper.make_graph([node], "branch", [], [output], [floats([weight], "w")])
    return model_of([make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)])


def function_of(
    name: str, inputs: str, outputs: str, nodes: Sequence[onnx.NodeProto], *attributes: str
) -> onnx.FunctionProto:
    names, opsets = (inputs.split(), outputs.split()), [helper.make_opsetid("", 17)]
    return helper.make_function("own", name, *names, nodes, opsets, attributes)


def function_model(weight: float) -> onnx.ModelProto:
    nodes = [
        make_node("Constant", [], ["w"], value=floats([weight], "w")),
        make_node("Add", ["x", "w"], ["y"]),
    ]
    model = model_of([node("plus", "x", "y", domain="own")])
    model.functions.append(function_of("plus", "x", "y", nodes))
    return model


# The onnx package's light models, with weights that matter.


@pytest.fixture(scope="module")
def squeezenet() -> onnx.ModelProto:
    return seeded_light("squeezenet", 1)


def test_another_seed_changes_weights_only(squeezenet: onnx.ModelProto) -> None:
    other = seeded_light("squeezenet", 2)
    assert other != squeezenet
    assert graph_digest(other.SerializeToString()) == graph_digest(squeezenet.SerializeToString())


def test_no_weight_is_constant_or_endless(squeezenet: onnx.ModelProto) -> None:
    weights = [numpy_helper.to_array(tensor) for tensor in squeezenet.graph.initializer]
    floats = [weight for weight in weights if weight.dtype == np.float32 and weight.size > 1]
    assert floats
    assert all(np.isfinite(weight).all() and weight.std() > 0 for weight in floats)


# Models without their weights have the shapes that they have with them.

WEIGHTS = numpy_helper.from_array(np.ones((6, 100), np.float32), "weights")
TABLE = numpy_helper.from_array(np.arange(1000), "table")
PLACE = numpy_helper.from_array(np.array([6, 100]), "place")


def model() -> onnx.ModelProto:
    """The weights, reshaped to two numbers of a table: 6 and 100."""
    nodes = [
        make_node("Gather", ["table", "place"], ["shape"]),
        make_node("Reshape", ["weights", "shape"], ["reshaped"]),
        make_node("Add", ["x", "reshaped"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], [WEIGHTS, TABLE, PLACE]))


def test_of_large_weights_type_and_extents_are_left() -> None:
    before = model()
    after = without_weights(before, most=10)
    kept = {tensor.name: tensor for tensor in after.graph.initializer}
    assert kept["weights"] == TensorProto(name="weights", data_type=1, dims=[6, 100])
    assert (kept["place"], kept["table"]) == (PLACE, TABLE)
    assert before == model()


# A model is taken in with all its numbers, and with no others.

NUMBERS = np.arange(4, dtype=np.float32)


def branch_with(tensor: TensorProto) -> bytes:
    branch = helper.make_graph([], "branch", [], [], [tensor])
    node = make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    content: bytes = helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString()
    return content


def laid_out(**where: str) -> TensorProto:
    tensor = lay_out(numpy_helper.from_array(NUMBERS, "w"), "w.bin")
    for key, value in where.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def with_data(model: bytes, directory: Path) -> onnx.ModelProto:
    data_files(model)
    proto: onnx.ModelProto = onnx.ModelProto.FromString(model)
    take_in(proto, DataFiles(proto, directory))
    return proto


def test_data_of_a_branch_are_taken_in(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"head" + NUMBERS.tobytes() + b"tail")
    proto = with_data(branch_with(laid_out(offset="4", length="16")), tmp_path)
    for attribute in proto.graph.node[0].attribute:
        (tensor,) = attribute.g.initializer
        assert numpy_helper.to_array(tensor).tolist() == NUMBERS.tolist()
        assert not tensor.external_data


def test_a_model_may_have_more_data_files_than_a_process_may_open(tmp_path: Path) -> None:
    names = [f"{i}.bin" for i in range(100)]
    tensors = [lay_out(numpy_helper.from_array(NUMBERS, name), name) for name in names]
    for name in names:
        (tmp_path / name).write_bytes(NUMBERS.tobytes())
    model = helper.make_model(helper.make_graph([], "g", [], [], tensors)).SerializeToString()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 20, hard))
    try:
        proto = with_data(model, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert all(each.raw_data == NUMBERS.tobytes() for each in proto.graph.initializer)


def test_a_model_without_data_files_stays_as_it_is(tmp_path: Path) -> None:
    model = branch_with(numpy_helper.from_array(NUMBERS, "w"))
    assert with_data(model, tmp_path) == onnx.ModelProto.FromString(model)


def test_a_file_that_ends_too_soon_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(NUMBERS.tobytes())
    with pytest.raises(ModelError, match=r"^its data file 'w.bin' ends before tensor 'w' does$"):
        with_data(branch_with(laid_out(offset="4", length="16")), tmp_path)


def test_a_link_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(NUMBERS.tobytes())
    (tmp_path / "w.bin").symlink_to("real")
    with pytest.raises(ModelError, match=r"^its data file 'w.bin' is missing"):
        with_data(model_with_data("w.bin"), tmp_path)


def test_a_tensor_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    tensor = TensorProto(name="v", data_location=TensorProto.EXTERNAL)
    branch = helper.make_graph([], "branch", [], [], [tensor, laid_out()])
    node = make_node("If", ["c"], ["y"], then_branch=branch)
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    (tmp_path / "w.bin").write_bytes(NUMBERS.tobytes())
    with pytest.raises(
        ModelError, match=r"^its tensor 'v' has its numbers in a data file, and names none"
    ):
        with_data(model.SerializeToString(), tmp_path)


# The digest of a model's kernels.


def digest_of_kernels(directory: Path, model: onnx.ModelProto) -> str | None:
    return kernel_digest(save(model, directory / "m.onnx"))


def with_constant(operator: str, value: object) -> onnx.ModelProto:
    constant = np.array(value, np.float32)
    nodes = [node(operator, "x c", "y")]
    return graph_of(nodes, [GraphInput("x", (2, 8), "float32")], "y", {"c": constant})


def test_other_weights_have_the_same_kernels_and_another_graph_has_others(tmp_path: Path) -> None:
    first, second = (digest_of_kernels(tmp_path, conv_model(seed=seed)) for seed in (1, 2))
    assert first == second is not None
    assert digest_of_kernels(tmp_path, conv_model(seed=1, out=16)) != first


@pytest.mark.parametrize(
    ("operator", "one", "other"),
    [
        ("Mul", [1.0], [1.5]),  # an optimizer leaves it out
        ("Add", [0.5], [0.0]),
        ("Mul", 2.0, 3.0),  # without a dimension it stands in the kernel
        ("Pow", [2.0], [3.0]),
    ],
)
def test_a_number_that_decides_about_a_kernel_counts(
    tmp_path: Path, operator: str, one: object, other: object
) -> None:
    first, second = (
        digest_of_kernels(tmp_path, with_constant(operator, each)) for each in (one, other)
    )
    assert first != second


@pytest.mark.parametrize(("one", "other"), [([1.5], [2.5]), ([[1.5, 1] * 4], [[1, 2.5] * 4])])
def test_a_number_that_is_only_computed_with_does_not_count(
    tmp_path: Path, one: object, other: object
) -> None:
    first, second = (
        digest_of_kernels(tmp_path, with_constant("Mul", each)) for each in (one, other)
    )
    assert first == second is not None


def test_two_weights_that_become_the_same_count(tmp_path: Path) -> None:
    def twice(second: float) -> onnx.ModelProto:
        weights = {"a": np.full((8, 8), 2, "f"), "b": np.full((8, 8), second, "f")}
        nodes = [node("MatMul", "x a", "h"), node("MatMul", "h b", "y")]
        return graph_of(nodes, [GraphInput("x", (2, 8), "float32")], "y", weights)

    assert (
        digest_of_kernels(tmp_path, twice(3))
        == digest_of_kernels(tmp_path, twice(4))
        != digest_of_kernels(tmp_path, twice(2))
    )


def test_of_no_model_and_of_one_in_several_files_nothing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"no model")
    assert kernel_digest(file) is None
    onnx.save(conv_model(), file, save_as_external_data=True, location="data", size_threshold=0)
    assert kernel_digest(file) is None


def test_an_outline_counts_operators_and_weights_and_names_the_inputs() -> None:
    model = conv_model().SerializeToString()
    found = outline_of(model)
    assert found.parts == {"Conv": 1, "Relu": 1, "[8, 8, 3, 3]": 1, "[8]": 1}
    assert found.inputs == (ModelInput("x", (1, 8, 8, 8), dtype="float32"),)
    assert found.graph_digest == graph_digest(model)


def test_an_open_dimension_is_none() -> None:
    found = outline_of(matmul_model(rows="batch").SerializeToString())
    assert found.inputs == (ModelInput("x", (None, 16), ("batch", ""), dtype="float32"),)


def test_random_operators_with_a_seed_are_found_inside_a_branch_too() -> None:
    model = matmul_model()
    branch = helper.make_graph(
        [make_node("RandomUniform", [], ["r"], shape=[1], seed=7.0)],
        "branch",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [1])],
    )
    model.graph.node.append(make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    model.graph.node.append(make_node("RandomNormal", [], ["n"], shape=[1]))
    assert outline_of(model.SerializeToString()).seeded == ("RandomUniform 7.0",) * 2


@pytest.mark.parametrize(("reads", "is_told"), [("x", True), ("size", False), ("w", False)])
def test_work_that_numbers_of_the_inputs_choose_is_told(reads: str, is_told: bool) -> None:
    model = matmul_model()
    empty = helper.make_graph([], "branch", [], [])
    chosen = make_node("If", ["c"], [], then_branch=empty, else_branch=empty)
    sized = [node("ConstantOfShape", "c", "z"), node("NonZero", "c", "n")]
    sized += [make_node("Tile", ["w", "c"], [name]) for name in ("t", "u")]
    model.graph.node.extend([node("Size", "x", "size"), node("ReduceMax", reads, "c"), *sized])
    model.graph.node.append(chosen)
    told = ("ConstantOfShape", "If", "NonZero", "Tile", "Tile") if is_told else ()
    assert outline_of(model.SerializeToString()).choosing == told


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        *[("LSTM", 4), ("RoiAlign", 1), ("CropAndResize", 3), ("SequenceAt", 1)],
        *[("ai.onnx.ml.TreeEnsemble", 0), ("com.microsoft.MoE", 1)],
        *[("com.microsoft.Attention", 3), ("Attention", 6), ("MultiHeadAttention", 4)],
        *[
            ("TopK", 0),
            ("Dropout", 2),
            ("Pow", 1),
            ("CumSum", 1),
            ("TfIdfVectorizer", 0),
            ("com.microsoft.SparseToDenseMatMul", 0),
        ],
        *[("a.library.of.ours.Wait", 1), ("com.microsoft.DynamicTimeWarping", 0)],
    ],
)
def test_lengths_regions_and_places_that_an_input_gives_choose_work(kind: str, place: int) -> None:
    def choosing(name: str) -> tuple[str, ...]:
        inputs = [*["w"] * place, name]
        model = matmul_model()
        model.graph.node.append(make_node(operator, inputs, ["chosen"], domain=domain))
        return outline_of(model.SerializeToString()).choosing

    domain, _, operator = kind.rpartition(".")
    assert choosing("x") == (operator,)
    assert choosing("w") == ()


@pytest.mark.parametrize(
    ("label", "choosing"),
    [("values_strings", ("Gather", "LabelEncoder")), ("values_floats", ("LabelEncoder",))],
)
def test_texts_of_a_length_that_numbers_choose_are_work_that_they_choose(
    label: str, choosing: tuple[str, ...]
) -> None:
    values: dict[str, Any] = {label: ["a" * 1000] if label == "values_strings" else [1.0]}
    model = matmul_model()
    model.graph.node.extend(
        [
            make_node("Cast", ["x"], ["number"], to=TensorProto.INT64),
            make_node(
                "LabelEncoder", ["number"], ["t"], domain="ai.onnx.ml", keys_int64s=[1], **values
            ),
            make_node("Gather", ["t", "i"], ["z"]),
            make_node("Mod", ["number", "number"], ["rest"]),
        ]
    )
    assert outline_of(model.SerializeToString()).choosing == choosing


@pytest.mark.parametrize("is_text", [True, False])
def test_what_an_input_chooses_is_found_through_each_overload_of_a_function(is_text: bool) -> None:
    model = matmul_model()
    for name in ("first", "second"):
        text = {"value_string": name} if is_text else {"value_float": 1.0}
        sized = [make_node("ConstantOfShape", ["a"], ["b"])] if name == "first" else []
        made = make_node("Constant", [], ["text" if sized else "b"], **text)
        function = function_of("F", "a", "b", [*sized, made])
        function.overload = name
        model.functions.append(function)
    model.graph.node.append(make_node("F", ["x"], ["z"], domain="own"))
    model.graph.node.append(make_node("Flatten", ["z"], ["flat"]))
    told = ("ConstantOfShape", "F", "Flatten") if is_text else ("ConstantOfShape",)
    assert outline_of(model.SerializeToString()).choosing == told


def test_a_text_may_be_what_a_function_gets_from_its_callers() -> None:
    cast = make_node("Cast", ["a"], ["b"])
    kind = cast.attribute.add(name="to", ref_attr_name="kind", type=onnx.AttributeProto.INT)
    assert kind.ref_attr_name
    model = matmul_model()
    model.functions.append(function_of("F", "a", "b", [cast], "kind"))
    model.graph.node.append(node("F", "x", "z", domain="own", kind=TensorProto.STRING))
    assert outline_of(model.SerializeToString()).choosing == ("Cast", "F")


def test_a_seed_that_a_function_gets_from_its_callers_is_each_of_theirs() -> None:
    random = make_node("RandomUniformLike", ["a"], ["b"])
    seed = random.attribute.add(name="seed", ref_attr_name="s", type=onnx.AttributeProto.FLOAT)
    assert seed.ref_attr_name
    model = matmul_model()
    model.functions.append(function_of("F", "a", "b", [random], "s"))
    for value in (1.0, 2.0):
        call = make_node("F", ["y"], [f"z{value}"], domain="own", s=value)
        model.graph.node.append(call)
    found = outline_of(model.SerializeToString()).seeded
    assert found == ("RandomUniformLike 1.0 or 2.0",)


def test_an_operator_of_another_domain_is_another_operator() -> None:
    assert operator_of(make_node("Attention", [], [])) == "Attention"
    ours = make_node("Attention", [], [], domain="com.microsoft")
    assert operator_of(ours) == "com.microsoft.Attention"
