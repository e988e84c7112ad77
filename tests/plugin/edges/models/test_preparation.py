from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.edges.models import preparation as onnx_prepare
from tunegate.edges.models.preparation import file_digests, prepare
from tunegate.errors import ModelError

FLOAT = onnx.TensorProto.FLOAT


def test_a_static_model_keeps_its_inputs_and_drops_what_the_optimizer_adds(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")
    assert [(t.name, t.shape, t.dtype) for t in prepared.inputs] == [("x", (1, 8, 8, 8), "float32")]
    assert [i.name for i in onnx.load(prepared.optimized).graph.input] == ["x"]


def test_a_dynamic_dimension_takes_its_size_from_the_config(tmp_path: Path) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={"x": (5, 16)}, into=tmp_path / "p", path="m.onnx")
    assert prepared.inputs[0].shape == (5, 16)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, 'm.onnx: dimension "batch" (axis 0) of input x is dynamic. Give the whole shape'),
        ({"x": (5,)}, "m.onnx: inputs.x has 1 numbers, the model's has 2 dimensions"),
        ({"x": (5, 17)}, "m.onnx: inputs.x: axis 1 is 16 in the model, not 17"),
        ({"z": (5, 16)}, "m.onnx: inputs.z: the model has no such input; it has x"),
    ],
)
def test_a_shape_that_cannot_be_used_is_named(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    file = save(matmul_model(rows="batch"), tmp_path / "m.onnx")
    with pytest.raises(ModelError) as caught:
        prepare(file, shapes=shapes, into=tmp_path / "p", path="m.onnx")
    assert message in str(caught.value)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ModelError, match=r"models/m\.onnx: not a valid ONNX model"):
        prepare(file, shapes={}, into=tmp_path / "p", path="models/m.onnx")


def test_an_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    model = one_node_model("Frobnicate")
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"m\.onnx: .*Frobnicate"):
        prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")


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
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    prepared = prepare(
        save(model, tmp_path / "m.onnx"), shapes={}, into=tmp_path / "p", path="m.onnx"
    )
    assert {n.op_type for n in onnx.load(prepared.optimized).graph.node} <= {"Add", "Identity"}
    feed = {n: np.random.default_rng(0).random(shape, dtype=np.float32) for n in names}
    results = [
        onnxruntime.InferenceSession(str(file)).run(None, feed)[0]
        for file in (prepared.fixed, prepared.optimized)
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("limit", [2**31, 100])
def test_weights_in_files_beside_the_model_reach_the_compiler(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`limit` is what fits into one file; real models pass 2 GB."""
    model = conv_model()
    expected = onnx.numpy_helper.to_array(model.graph.initializer[0])
    file = tmp_path / "m" / "m.onnx"
    file.parent.mkdir()
    onnx.save(model, file, save_as_external_data=True, location="m.data", size_threshold=0)
    monkeypatch.setattr(onnx_prepare, "_PROTOBUF_LIMIT_BYTES", limit)
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    weights = {t.name: t for t in onnx.load(prepared.optimized).graph.initializer}
    np.testing.assert_array_equal(
        onnx.numpy_helper.to_array(weights[model.graph.initializer[0].name]), expected
    )


def test_the_weights_beside_a_large_model_are_in_its_digests(tmp_path: Path) -> None:
    file = tmp_path / "optimized.onnx"
    file.write_bytes(b"graph")
    (tmp_path / "optimized.data").write_bytes(b"weights")
    before = file_digests(file)
    (tmp_path / "optimized.data").write_bytes(b"changed")
    assert set(before) == {"optimized.onnx", "optimized.data"}
    assert file_digests(file) != before
