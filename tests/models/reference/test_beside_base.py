"""What consumers of a model's outputs want to know of a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import matmul_model, save
from tunegate.models.reference.beside_base import lines_beside_base
from tunegate.system.output.artifact_file import ArtifactTensor

INPUTS = [ArtifactTensor("x", (4, 64), "float32")]


def lines(tmp_path: Path, base: onnx.ModelProto, head: onnx.ModelProto) -> tuple[str, ...]:
    was, now = save(base, tmp_path / "base.onnx"), save(head, tmp_path / "head.onnx")
    return lines_beside_base(was, now, INPUTS, 1)


def quantized_product(accuracy_level: int) -> onnx.ModelProto:
    """A product with weights of four bits, whose level decides how exact its sums are."""
    random = np.random.default_rng(0)
    packed = random.integers(0, 256, (32, 2, 16), np.uint8)
    scales = random.random(64).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "scales"],
        ["y"],
        domain="com.microsoft",
        K=64,
        N=32,
        bits=4,
        block_size=32,
        accuracy_level=accuracy_level,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 32])],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "scales")],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def test_other_numbers_with_the_same_weights_are_told(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, quantized_product(0), quantized_product(4))
    assert line.startswith("with the same weights its output y is off by ")


def test_a_change_that_is_rounding_alone_is_not_told(tmp_path: Path) -> None:
    base = matmul_model(rows=4, inner=64)
    head = matmul_model(rows=4, inner=64)
    head.graph.node[0].name = "another"
    assert lines(tmp_path, base, head) == ()


def test_new_weights_are_no_news(tmp_path: Path) -> None:
    base, head = (matmul_model(rows=4, inner=64, seed=seed) for seed in (1, 2))
    assert lines(tmp_path, base, head) == ()


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "line"),
    [
        ("z", TensorProto.FLOAT, [4, 16], "its outputs are z; the base's are y"),
        ("y", TensorProto.DOUBLE, [4, 16], "its output y is float64; the base's is float32"),
        ("y", TensorProto.FLOAT, [4, 4, 4], "its output y is of rank 3; the base's is of rank 2"),
    ],
)
def test_another_name_type_or_rank_of_an_output_is_told(
    name: str, dtype: int, shape: list[int], line: str, tmp_path: Path
) -> None:
    base, head = matmul_model(rows=4, inner=64), matmul_model(rows=4, inner=64)
    head.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, dtype, shape))
    assert lines(tmp_path, base, head) == (line,)


def test_a_base_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "base.onnx").write_bytes(b"nonsense")
    head = save(matmul_model(rows=4, inner=64), tmp_path / "head.onnx")
    assert lines_beside_base(tmp_path / "base.onnx", head, INPUTS, 1) == ()
