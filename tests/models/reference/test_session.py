from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.models.inexact import row_norm
from tests.support.small_onnx import save
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession, write_optimized


def two_outputs() -> onnx.ModelProto:
    """A model that gives x + x, and x times a constant that must be folded."""
    floats = TensorProto.FLOAT
    two = helper.make_tensor("two", floats, [1], [2.0])
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("Mul", ["two", "two"], ["four"]),
        helper.make_node("Mul", ["x", "four"], ["product"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", floats, [3])],
        [helper.make_tensor_value_info(name, floats, [3]) for name in ("sum", "product")],
        [two],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model


FEED = {"x": np.array([1.0, 2.0, 3.0], "float32")}


def test_every_output_comes_in_the_order_of_the_model(tmp_path: Path) -> None:
    total, product = ReferenceSession(save(two_outputs(), tmp_path / "m.onnx")).run(FEED)
    assert total.tolist() == [2.0, 4.0, 6.0]
    assert product.tolist() == [4.0, 8.0, 12.0]


def test_constants_are_folded_and_the_numbers_stay(tmp_path: Path) -> None:
    model = save(two_outputs(), tmp_path / "m.onnx")
    write_optimized(model, tmp_path / "optimized.onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert sorted(kinds) == ["Add", "Mul"]
    optimized = ReferenceSession(tmp_path / "optimized.onnx").run(FEED)
    assert [output.tolist() for output in optimized] == [[2.0, 4.0, 6.0], [4.0, 8.0, 12.0]]


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_layer_norm_is_optimized_only_where_it_is_one(
    kind: str, keepdims: int, tmp_path: Path
) -> None:
    model = save(row_norm(kind, keepdims), tmp_path / "m.onnx")
    write_optimized(model, tmp_path / "optimized.onnx")
    feed = {"x": np.random.default_rng(0).standard_normal((16, 16)).astype("float32")}
    (found,), (expected,) = (
        ReferenceSession(each, level=NO_OPTIMIZATION).run(feed)
        for each in (tmp_path / "optimized.onnx", model)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_no_model_raises_what_onnx_runtime_raises(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(Exception, match=r"m\.onnx"):
        write_optimized(tmp_path / "m.onnx", tmp_path / "o.onnx")
