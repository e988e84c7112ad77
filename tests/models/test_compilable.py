from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from tests.support.small_onnx import one_node_model, save
from tunegate.models.preparation import prepare

FLOAT = onnx.TensorProto.FLOAT


def test_an_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    proto = one_node_model("Frobnicate")
    file = tmp_path / "m.onnx"
    file.write_bytes(proto.SerializeToString())
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    assert prepared.unfixable == (
        'm.onnx: operator Frobnicate (node "odd") is not supported by the compiler.'
    )


def test_sums_become_chains_of_additions_with_the_same_result(tmp_path: Path) -> None:
    shape = [2, 3]
    value = onnx.helper.make_tensor_value_info
    names = ("a", "b", "c")
    nodes = [
        onnx.helper.make_node("Sum", list(names), ["three"], name="s3"),
        onnx.helper.make_node("Sum", ["three"], ["one"], name="s1"),
        onnx.helper.make_node("Sum", ["one", "a"], ["y"], name="s2"),
    ]
    graph = onnx.helper.make_graph(
        nodes, "sums", [value(n, FLOAT, shape) for n in names], [value("y", FLOAT, shape)]
    )
    opsets = [onnx.helper.make_opsetid("", 13)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    prepared = prepare(
        save(proto, tmp_path / "m.onnx"), shapes={}, into=tmp_path / "p", path="m.onnx"
    )
    assert {n.op_type for n in onnx.load(prepared.optimized).graph.node} <= {"Add", "Identity"}
    feed = {n: np.random.default_rng(0).random(shape, dtype=np.float32) for n in names}
    results = [
        onnxruntime.InferenceSession(str(file)).run(None, feed)[0]
        for file in (prepared.fixed, prepared.optimized)
    ]
    np.testing.assert_array_equal(*results)
