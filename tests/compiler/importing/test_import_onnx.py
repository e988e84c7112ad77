"""The importer names what neither TVM nor we know."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper

from tests.support.operator_models import operator_model, outputs_of, rewritten
from tests.support.small_onnx import matmul_model, one_node_model, save
from tunegate.compiler.compile import handle_request
from tunegate.compiler.importing.graph_view import GraphView
from tunegate.compiler.importing.import_onnx import imported
from tunegate.compiler.importing.rewriting import importable
from tunegate.compiler.loader import TvmArtifact
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import BuildModel, Built
from tunegate.tune.protocol import ModelFile


def test_a_model_becomes_a_module_with_a_main_function() -> None:
    module = imported(matmul_model())
    assert "main" in {variable.name_hint for variable in module.get_global_vars()}


def test_inputs_have_names_that_are_names_in_c_and_each_its_own() -> None:
    names = ("gpu_0/data_0", "gpu_0.data_0")
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in (*names, "y")]
    node = helper.make_node("Add", names, ["y"])
    model = helper.make_model(helper.make_graph([node], "g", values[:2], values[2:]))
    first, second = (str(each.name) for each in imported(model)["main"].params)
    assert first == "gpu_0_data_0"
    assert second.isidentifier()
    assert second != first


def test_an_operator_that_nobody_knows_is_named() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="Det"):
        imported(one_node_model("Det"))


# What TVM would build wrong is refused by name.


def test_an_output_that_is_no_tensor_is_named() -> None:
    model: onnx.ModelProto = one_node_model("SequenceConstruct")
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [4, 4])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    with pytest.raises(UnsupportedModelError, match="output y"):
        importable(model)


# What is given by an input, and known from the result.

DATA = np.random.default_rng(0).standard_normal((2, 1, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        ("Reshape", [3, -1, 2]),
        ("Squeeze", [1]),
        ("Unsqueeze", [0, 3]),
        ("Expand", [3, 2, 4, 6]),
        ("Tile", [1, 2, 3]),
    ],
)
def test_the_extents_take_the_place_of_the_operand(operator: str, operand: list[int]) -> None:
    feed = {"x": DATA, "s": np.array(operand, np.int64)}
    model = operator_model(helper.make_node(operator, ["x", "s"], ["y"]), feed)
    rewritten(model, feed)
    view = GraphView(importable(model))
    assert all(view.constant(n.input[1]) is not None for n in importable(model).graph.node)


def test_a_shape_with_a_zero_is_taken_by_the_letter() -> None:
    feed = {"x": np.zeros((0, 4), np.float32), "s": np.array([2, 0], np.int64)}
    node = helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)
    rewritten(operator_model(node, feed), feed)


def test_parts_and_best_places_are_counted_in_the_result() -> None:
    feed = {"x": DATA, "s": np.array([1, 5], np.int64)}
    split = operator_model(helper.make_node("Split", ["x", "s"], ["y", "z"], axis=2), feed)
    rewritten(split, feed)
    feed = {"x": DATA, "k": np.array([4], np.int64)}
    rewritten(operator_model(helper.make_node("TopK", ["x", "k"], ["y", "z"]), feed), feed)


def test_a_constant_of_a_shape_fills_it() -> None:
    feed = {"s": np.array([2, 3], np.int64)}
    value = numpy_helper.from_array(np.array([7], np.int32))
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], value=value)
    model = operator_model(node, feed)
    assert (outputs_of(importable(model), feed)[0] == np.full((2, 3), 7)).all()


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 2, 4, 5]])
def test_a_grid_has_the_extents_of_its_result(size: list[int]) -> None:
    rank = len(size) - 2
    theta = np.random.default_rng(0).standard_normal((2, rank, rank + 1)).astype(np.float32)
    feed = {"t": theta, "s": np.array(size, np.int64)}
    rewritten(operator_model(helper.make_node("AffineGrid", ["t", "s"], ["y"]), feed), feed)


# Operators in TVM's own words, compiled, beside ONNX Runtime.

CPU = TargetConfig(name="cpu", threads=1)
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-128, 128, (4, 2, 3, 3)).astype(np.int8)


def test_a_model_of_them_gives_the_same_numbers(tmp_path: Path) -> None:
    feed: dict[str, np.ndarray] = {
        "q": RANDOM.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8),
        "x": RANDOM.standard_normal((3, 4)).astype(np.float32),
        "w": RANDOM.standard_normal((5, 1, 4)).astype(np.float32),
    }
    model = save(everything(), tmp_path / "m.onnx")
    for ours, theirs in zip(
        built(model, feed, tmp_path), outputs_of(onnx.load(model), feed), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def everything() -> onnx.ModelProto:
    """A quantized convolution with padding, a running sum, and a GRU in both directions, and
    extremes of scalars, which crashed the compiler beside a convolution."""
    weights: dict[str, np.ndarray] = {
        "k": WEIGHTS,
        "scale": np.array(0.02, np.float32),
        "zero": np.array(120, np.uint8),
        "kscale": np.array([0.01, 0.02, 0.03, 0.01], np.float32),
        "kzero": np.zeros(4, np.int8),
        "axis": np.array(1, np.int64),
        "gw": RANDOM.standard_normal((2, 9, 4)).astype(np.float32),
        "gr": RANDOM.standard_normal((2, 9, 3)).astype(np.float32),
    }
    names = ["q", "scale", "zero", "k", "kscale", "kzero", "scale", "zero"]
    nodes = [
        helper.make_node("QLinearConv", names, ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("DynamicQuantizeLinear", ["x"], ["d", "ds", "dz"]),
        helper.make_node("CumSum", ["x", "axis"], ["b"], reverse=1),
        helper.make_node("GRU", ["w", "gw", "gr"], ["c"], hidden_size=3, direction="bidirectional"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("q", TensorProto.UINT8, [1, 2, 5, 5]),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [5, 1, 4]),
        ],
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 4, 5, 5]),
            helper.make_tensor_value_info("d", TensorProto.UINT8, [3, 4]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 4]),
            helper.make_tensor_value_info("c", TensorProto.FLOAT, [5, 2, 1, 3]),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def built(model: Path, feed: dict[str, np.ndarray], place: Path) -> list[np.ndarray]:
    """What the model gives when it is built with default schedules."""
    request = BuildModel(
        model=ModelFile(file=str(model), path="m.onnx", shapes={}),
        target=CPU,
        records={},
        sources={},
        directory=str(place / "build"),
        scratch=str(place / "scratch"),
        seed=1,
    )
    assert isinstance(handle_request(request), Built)
    artifact = ArtifactFile.read(place / "build")
    return list(TvmArtifact(place / "build", artifact).run(feed))
