from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

from tunegate.edges.models.sizes.demanded_sizes import demanded_sizes


@pytest.mark.parametrize(
    ("operator", "weight", "attributes", "demanded"),
    [
        ("MatMul", [37, 5], {}, {("x", -1): 37}),
        ("Gemm", [5, 37], {"transB": 1}, {("x", -1): 37}),
        ("Conv", [8, 2, 3, 3], {"group": 4}, {("x", 1): 8}),
        ("ConvTranspose", [8, 2, 3, 3], {}, {("x", 1): 8}),
        ("LSTM", [1, 16, 7], {}, {("x", -1): 7}),
        ("Add", [8], {}, {}),
    ],
)
def test_weights_say_how_wide_an_input_is(
    operator: str, weight: list[int], attributes: dict[str, Any], demanded: dict[object, int]
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
    assert demanded_sizes(helper.make_graph(nodes, "g", inputs, [], weights)) == demanded
