from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.small_onnx import conv_model, matmul_model, save
from tunegate.artifacts.changes import ModelInput
from tunegate.models.graph import graph_digest, operator_of, outline_of
from tunegate.models.kernel_digest import kernel_digest


def digest(directory: Path, model: onnx.ModelProto) -> str | None:
    return kernel_digest(save(model, directory / "m.onnx"))


def with_constant(operator: str, value: object) -> onnx.ModelProto:
    constant = np.array(value, np.float32)
    nodes = [node(operator, "x c", "y")]
    return graph_of(nodes, [GraphInput("x", (2, 8), "float32")], "y", {"c": constant})


def test_other_weights_have_the_same_kernels_and_another_graph_has_others(tmp_path: Path) -> None:
    first, second = (digest(tmp_path, conv_model(seed=seed)) for seed in (1, 2))
    assert first == second is not None
    assert digest(tmp_path, conv_model(seed=1, out=16)) != first


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
    first, second = (digest(tmp_path, with_constant(operator, each)) for each in (one, other))
    assert first != second


@pytest.mark.parametrize(("one", "other"), [([1.5], [2.5]), ([[1.5, 1] * 4], [[1, 2.5] * 4])])
def test_a_number_that_is_only_computed_with_does_not_count(
    tmp_path: Path, one: object, other: object
) -> None:
    first, second = (digest(tmp_path, with_constant("Mul", each)) for each in (one, other))
    assert first == second is not None


def test_two_weights_that_become_the_same_count(tmp_path: Path) -> None:
    def twice(second: float) -> onnx.ModelProto:
        weights = {"a": np.full((8, 8), 2, "f"), "b": np.full((8, 8), second, "f")}
        nodes = [node("MatMul", "x a", "h"), node("MatMul", "h b", "y")]
        return graph_of(nodes, [GraphInput("x", (2, 8), "float32")], "y", weights)

    assert digest(tmp_path, twice(3)) == digest(tmp_path, twice(4)) != digest(tmp_path, twice(2))


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
        [helper.make_node("RandomUniform", [], ["r"], shape=[1], seed=7.0)],
        "branch",
        [],
        [helper.make_tensor_value_info("r", TensorProto.FLOAT, [1])],
    )
    model.graph.node.append(
        helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    )
    model.graph.node.append(helper.make_node("RandomNormal", [], ["n"], shape=[1]))
    assert outline_of(model.SerializeToString()).seeded == ("RandomUniform 7.0",) * 2


@pytest.mark.parametrize(("reads", "is_told"), [("x", True), ("size", False), ("w", False)])
def test_work_that_numbers_of_the_inputs_choose_is_told(reads: str, is_told: bool) -> None:
    model = matmul_model()
    empty = helper.make_graph([], "branch", [], [])
    chosen = helper.make_node("If", ["c"], [], then_branch=empty, else_branch=empty)
    sized = [node("ConstantOfShape", "c", "z"), node("NonZero", "c", "n")]
    sized.append(helper.make_node("Tile", ["w", "c"], ["t"]))
    model.graph.node.extend([node("Size", "x", "size"), node("ReduceMax", reads, "c"), *sized])
    model.graph.node.append(chosen)
    told = ("ConstantOfShape", "If", "NonZero", "Tile") if is_told else ()
    assert outline_of(model.SerializeToString()).choosing == told


def test_a_seed_that_a_function_gets_from_its_callers_is_each_of_theirs() -> None:
    random = helper.make_node("RandomUniformLike", ["a"], ["b"])
    seed = random.attribute.add(name="seed", ref_attr_name="s", type=onnx.AttributeProto.FLOAT)
    assert seed.ref_attr_name
    model = matmul_model()
    opset = [helper.make_opsetid("", 17)]
    model.functions.append(
        helper.make_function("own", "F", ["a"], ["b"], [random], opset, attributes=["s"])
    )
    for value in (1.0, 2.0):
        call = helper.make_node("F", ["y"], [f"z{value}"], domain="own", s=value)
        model.graph.node.append(call)
    found = outline_of(model.SerializeToString()).seeded
    assert found == ("RandomUniformLike 1.0", "RandomUniformLike 2.0")


def test_an_operator_of_another_domain_is_another_operator() -> None:
    assert operator_of(helper.make_node("Attention", [], [])) == "Attention"
    ours = helper.make_node("Attention", [], [], domain="com.microsoft")
    assert operator_of(ours) == "com.microsoft.Attention"
