from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from tunegate.models.sizes import demanded_ranks, demanded_sizes


@pytest.mark.parametrize(
    ("operator", "weight", "attributes", "demanded", "rank"),
    [
        ("MatMul", [37, 5], {}, {("x", -1): 37}, 2),
        ("Gemm", [5, 37], {"transB": 1}, {("x", -1): 37}, 2),
        ("Conv", [8, 2, 3, 3], {"group": 4}, {("x", 1): 8}, 4),
        ("Conv", [8, 2, 3], {}, {("x", 1): 2}, 3),
        ("ConvTranspose", [8, 2, 3, 3], {}, {("x", 1): 8}, 4),
        ("LSTM", [1, 16, 7], {}, {("x", -1): 7}, 3),
        ("MaxPool", [1], {"kernel_shape": [2]}, {}, 3),
        ("Transpose", [1], {"perm": [0, 2, 1]}, {}, 3),
        ("BatchNormalization", [1], {}, {("x", 1): 1}, 4),
        ("Add", [8], {}, {}, None),
    ],
)
def test_who_reads_an_input_says_how_wide_it_is_and_how_many_dimensions_it_has(
    operator: str,
    weight: list[int],
    attributes: dict[str, Any],
    demanded: dict[object, int],
    rank: int | None,
) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(operator, ["r", "w"], ["y"], **attributes),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)]
    count = 1
    for size in weight:
        count *= size
    weights = [helper.make_tensor("w", TensorProto.FLOAT, weight, [0.0] * count)]
    graph = helper.make_graph(nodes, "g", inputs, [], weights)
    assert demanded_sizes(graph) == demanded
    assert demanded_ranks(graph).get("x") == rank
