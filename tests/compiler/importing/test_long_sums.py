"""Long sums of float32, which a kernel would add one after the other."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.compiler.importing.test_edge_values import compiled
from tunegate.compiler.importing.node_errors import NodeError
from tunegate.compiler.importing.rewriting import importable

BLANK = np.float32(0.1)
ROWS, PIXELS, ODD = 2**17, 512, 100_003
OPERATORS = """
    mean = GlobalAveragePool(image)
    sum = ReduceSum<keepdims = 0>(image, axes)
    norm = ReduceL2<keepdims = 0>(row, last)
    log = ReduceLogSumExp<keepdims = 1>(row, last)
    shares = Softmax(row)
    logs = LogSoftmax<axis = 1>(row)
    product = MatMul(row, weights)
    affine = Gemm<transB = 1, alpha = 2.0, beta = 3.0>(row, turned, bias)
    odd = ReduceMean<keepdims = 0>(uneven, last)
"""
NAMES = [line.split()[0] for line in OPERATORS.strip().splitlines()]


def model_of(rows: int, pixels: int, odd: int) -> tuple[onnx.ModelProto, dict[str, Any]]:
    outputs = "float[1,2,1,1] mean, float[1,2] sum, float[1] norm, float[1,1] log"
    shares = f"float[1,{rows}] shares, float[1,{rows}] logs"
    products = "float[1,3] product, float[1,3] affine, float[1] odd"
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]>'
        f"m (float[1,2,{pixels},{pixels}] image, float[1,{rows}] row, float[{rows},3] weights,"
        f" float[3,{rows}] turned, float[3] bias, float[1,{odd}] uneven)"
        f" => ({outputs}, {shares}, {products}) <int64[2] axes = {{2, 3}}, int64[1] last = {{1}}>"
        f"{{ {OPERATORS} }}"
    )
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
    }
    return model, {name: np.full(shape, BLANK) for name, shape in shapes.items()}


def test_long_sums_of_equal_numbers_keep_their_digits(tmp_path: Path) -> None:
    model, feed = model_of(ROWS, PIXELS, ODD)
    blank, count = float(BLANK), float(ROWS)
    expected = {
        "mean": blank,
        "sum": blank * PIXELS * PIXELS,
        "norm": blank * np.sqrt(count),
        "log": blank + np.log(count),
        "shares": 1 / count,
        "logs": -np.log(count),
        "product": blank * blank * count,
        "affine": 2 * blank * blank * count + 3 * blank,
        "odd": blank,
    }
    for name, output in zip(NAMES, compiled(model, tmp_path).run(feed), strict=True):
        assert np.abs(output / expected[name] - 1).max() < 1e-4, name


def test_sums_of_usual_length_stay_as_they_are() -> None:
    model, _ = model_of(2**15, 160, 2**15)
    operators = [node.op_type for node in model.graph.node]
    assert [node.op_type for node in importable(model).graph.node] == operators


@pytest.mark.parametrize(
    ("operands", "result", "call"),
    [
        ("float[40000] x, float[40000] w", "float", "MatMul(x, w)"),
        ("float[1,40009] x, float[40009,2] w", "float[1,2]", "MatMul(x, w)"),
        ("float[40000] x, float[40000] w", "float", 'Einsum<equation = "i,i->">(x, w)'),
        ("float[1,3,128,128] x, float[4,3,128,128] w", "float[1,4,1,1]", "Conv(x, w)"),
    ],
)
def test_a_long_sum_that_is_not_split_is_refused_by_name(
    operands: str, result: str, call: str
) -> None:
    header = '<ir_version: 9, opset_import: ["" : 18]>'
    model = onnx.parser.parse_model(f"{header} m ({operands}) => ({result} y) {{ y = {call} }}")
    operator = call.partition("(")[0].partition("<")[0]
    with pytest.raises(NodeError, match=rf"{operator} .*adds 4.,\d+ products"):
        importable(model)
