from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.support.small_onnx import conv_model, matmul_model, save

from tunegate_study.operation_count import operations_of


def test_a_convolution_counts_its_window_and_channels(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    save(conv_model(channels=8, out=16, size=10), file)
    assert operations_of(file, {}) == 16 * 10 * 10 * 8 * 3 * 3


def test_a_product_counts_its_inner_dimension_at_the_size_that_is_given(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    save(matmul_model(rows="n", inner=16, columns=8), file)
    assert operations_of(file, {"x": (4, 16)}) == 4 * 16 * 8
    assert operations_of(file, {}) is None


def test_a_size_that_an_old_model_cuts_out_of_a_shape_is_known(tmp_path: Path) -> None:
    constants = {"begin": [0], "end": [1], "rest": [-1]}
    tensors = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()]
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "begin", "end"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["flat"], axis=0),
        helper.make_node("Reshape", ["x", "flat"], ["row"]),
        helper.make_node("MatMul", ["row", "w"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [*tensors, numpy_helper.from_array(np.ones((8, 5), np.float32), "w")],
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]), file)
    assert operations_of(file, {"x": (3, 2, 4)}) == 3 * 8 * 5


@pytest.mark.parametrize("operator", ["Relu", "LSTM"])
def test_what_has_no_count_is_not_known(tmp_path: Path, operator: str) -> None:
    weight = numpy_helper.from_array(np.ones((1, 8, 2), np.float32), "w")
    inputs = ["x"] if operator == "Relu" else ["x", "w", "w"]
    node = helper.make_node(operator, inputs, ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight],
    )
    file = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), file)
    assert operations_of(file, {}) is None


def test_a_file_that_is_no_model_is_not_known(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"nonsense")
    assert operations_of(file, {}) is None
