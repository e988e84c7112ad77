import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tunegate.models.deciding_values import chosen_by_inputs, deciding_values
from tunegate.models.seeded_inputs import load_value, save_value


def model(
    *nodes: onnx.NodeProto, functions: tuple[onnx.FunctionProto, ...] = ()
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", [], [])
    return helper.make_model(graph, functions=list(functions))


def body(*nodes: onnx.NodeProto, takes: str = "", gives: str = "inner") -> onnx.GraphProto:
    float_type = TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(takes, float_type, [])] if takes else []
    outputs = [helper.make_tensor_value_info(gives, float_type, [])]
    return helper.make_graph(list(nodes), "body", inputs, outputs)


def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], **attributes)


def test_a_shape_decides_and_so_does_all_that_it_is_computed_from() -> None:
    found = deciding_values(
        model(
            node("Mul", ["a", "b"], "product"),
            node("Concat", ["product", "c"], "shape", axis=0),
            node("Reshape", ["data", "shape"], "out"),
        )
    )
    assert found == {"shape", "product", "a", "b", "c"}


def test_a_condition_decides_and_what_both_branches_give_is_made_inside() -> None:
    branch = body(node("Relu", ["deep"], "inner"))
    chosen = node("If", ["condition"], "sizes", then_branch=branch, else_branch=branch)
    found = deciding_values(model(chosen, node("Tile", ["x", "sizes"], "out")))
    assert {"condition", "sizes", "inner", "deep"} <= found
    assert "x" not in found


def test_a_loop_ends_by_its_count_its_condition_and_what_its_body_says_first() -> None:
    turn = body(node("Less", ["state", "limit"], "goes_on"), takes="state", gives="goes_on")
    found = deciding_values(model(node("Loop", ["count", "condition", "start"], "end", body=turn)))
    assert {"count", "condition", "goes_on", "limit", "state", "start"} <= found


def test_regions_that_a_detector_finds_by_its_weights_leave_these_weights() -> None:
    boxes = node("MatMul", ["x", "w"], "boxes")
    assert deciding_values(model(boxes, node("RoiAlign", ["x", "boxes", "which"], "out"))) == set()


def test_a_node_of_thousands_of_inputs_and_outputs_costs_no_product_of_both() -> None:
    count = 5_000
    wide = helper.make_node(
        "Wide", [f"in{n}" for n in range(count)], [f"out{n}" for n in range(count)], domain="x"
    )
    reshape = helper.make_node("Reshape", ["data", "out0"], ["y"])
    tracemalloc.start()
    found = deciding_values(model(wide, reshape))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == count + 1
    assert peak_bytes < 20 * 2**20


def test_a_function_with_the_name_of_an_operator_is_what_it_computes() -> None:
    body = [node("ReduceMax", ["v"], "m"), node("Cast", ["m"], "c", to=TensorProto.BOOL)]
    chain = model(
        helper.make_node("Shape", ["x"], ["n"], domain="ai.onnx.ml"), node("If", ["n"], "y")
    )
    opset = [helper.make_opsetid("", 17)]
    chain.functions.append(helper.make_function("ai.onnx.ml", "Shape", ["v"], ["c"], body, opset))
    chain.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]))
    assert chosen_by_inputs(chain, ()) == ("If",)


def test_what_inputs_choose_costs_no_product_of_nodes() -> None:
    """ONNX Runtime runs nodes in any order, and a pass finds one more text where the last is
    first."""
    count = 20_000
    nodes = [node("Identity", [f"t{n}"], f"t{n + 1}") for n in reversed(range(count))]
    chain = model(*nodes, node("Cast", ["x"], "t0", to=TensorProto.STRING))
    chain.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]))
    assert len(chosen_by_inputs(chain, ())) == count + 1  # a product takes half an hour


@pytest.mark.parametrize(
    "value",
    [
        np.arange(3),
        np.zeros((0, 2)),
        [],
        [np.arange(2), np.ones((1, 1))],
        [np.array([at]) for at in range(12)],
        np.array(["a", "bc"], dtype=object),
        [np.array(["a"], dtype=object), np.array(["bc", ""], dtype=object)],
    ],
)
def test_what_was_kept_is_the_same_again(value: Any, tmp_path: Path) -> None:
    arrays = value if isinstance(value, list) else [value]
    dtype = arrays[0].dtype if arrays else np.dtype("float32")
    found = load_value(save_value(value, tmp_path / "value"), dtype)
    assert isinstance(found, list) == isinstance(value, list)
    again = found if isinstance(found, list) else [found]
    assert [each.tolist() for each in again] == [each.tolist() for each in arrays]
    assert {each.dtype for each in again} <= {dtype}
