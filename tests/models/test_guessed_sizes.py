from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import TensorProto, helper

from tunegate.models.sizes import guessed_sizes

Node = tuple[str, list[str], str]


def model(
    nodes: Sequence[Node],
    inputs: Mapping[str, list[str | int | None] | None],
    weights: dict[str, list[int]],
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    tensors = []
    for name, shape in weights.items():
        tensor = onnx.TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
        count = 4
        for size in shape:
            count *= size
        tensor.raw_data = bytes(count)
        tensors.append(tensor)
    graph = helper.make_graph(
        [helper.make_node(kind_, [*reads], [makes]) for kind_, reads, makes in nodes],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def sizes(made: onnx.ModelProto) -> list[int]:
    return [guess.size for guess in guessed_sizes(made)]


def test_a_size_that_the_graph_refuses_is_replaced_by_one_that_it_takes() -> None:
    nodes = [("Flatten", ["x"], "f"), ("Gemm", ["f", "w"], "y")]
    assert sizes(model(nodes, {"x": ["N", 3, "H", "W"]}, {"w": [3 * 32 * 32, 5]})) == [1, 32, 32]


def test_a_length_fits_the_positions_that_are_added() -> None:
    nodes = [("Gather", ["e", "ids"], "t"), ("Add", ["t", "p"], "y")]
    weights = {"e": [30, 16], "p": [1, 64, 16]}
    assert sizes(model(nodes, {"ids": ["batch", "seq"]}, weights, TensorProto.INT64)) == [1, 64]


def test_what_weights_demand_holds_wherever_the_symbol_stands() -> None:
    nodes = [("MatMul", ["x", "w"], "a"), ("Relu", ["other"], "y")]
    made = model(nodes, {"x": ["N", "wide"], "other": ["wide", "N"]}, {"w": [37, 5]})
    assert sizes(made) == [1, 37, 37, 1]


def test_dimensions_that_are_named_by_a_question_mark_are_not_the_same() -> None:
    made = model([("Relu", ["x"], "y")], {"x": ["?", 3, "?", "?"]}, {})
    assert sizes(made) == [1, 224, 224]


def test_a_static_model_has_nothing_to_guess() -> None:
    assert sizes(model([("Relu", ["x"], "y")], {"x": [1, 3]}, {})) == []


def test_a_dimension_that_is_a_sum_of_others_follows_from_them() -> None:
    made = model([("Relu", ["x"], "y")], {"x": ["past", "seq"], "mask": ["past + seq"]}, {})
    found = {guess.symbol: (guess.size, guess.is_sum) for guess in guessed_sizes(made)}
    assert found == {"past": (16, False), "seq": (128, False), "past + seq": (144, True)}


def test_an_input_without_a_rank_has_that_of_who_reads_it() -> None:
    made = model([("Conv", ["x", "w"], "y")], {"x": None}, {"w": [8, 3, 3, 3]})
    assert sizes(made) == [1, 3, 224, 224]
    assert sizes(model([("Relu", ["x"], "y")], {"x": None}, {})) == []
