from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.graphs import GraphInput, graph_of, node, values_of_inputs
from tests.support.present import present
from tunegate.artifacts.inputs import Columns, Constant, Integers
from tunegate.models.inputs.inferred_rules import inferred_rules
from tunegate.models.reference.session import ReferenceSession
from tunegate.models.seeded_inputs import seeded_inputs

X = GraphInput("x", (2, 3, 4, 6), "float32")
EMPTY: Mapping[str, Any] = {}
COLUMNS = {"cols": np.ones((1, 4, 9), np.float32), "block": np.array([2, 2])}
FEW = {"few": np.ones((1, 1, 3), np.float32), "places": np.array([[[0, 3, 5]]])}
WAVE = np.ones((1, 64, 1))


def _sizes(count: int, dtype: str = "int64") -> GraphInput:
    return GraphInput("size", (count,), dtype)


def _model(
    made: onnx.NodeProto,
    inputs: Sequence[GraphInput],
    declared: Sequence[int | str] | None,
    weights: Mapping[str, Any] = EMPTY,
) -> onnx.ModelProto:
    model = graph_of([made], inputs, " ".join(made.output), weights)
    if declared is not None:
        described = helper.make_tensor_value_info("y", TensorProto.FLOAT, declared)
        model.graph.output[0].type.tensor_type.shape.CopyFrom(described.type.tensor_type.shape)
    return model


def _drawn(model: onnx.ModelProto, inputs: Sequence[GraphInput], name: str) -> list[float]:
    """The numbers of an input, which are the same in each launch."""
    values = inferred_rules(model, inputs)[name].values  # type: ignore[union-attr]
    count = next(each.shape for each in inputs if each.name == name)
    if isinstance(values, Constant):
        return [values.value] * (count[0] if count else 1)  # type: ignore[list-item]
    assert isinstance(values, Columns)
    return [part.value for part in values.parts]  # type: ignore[union-attr, misc]


def test_axes_of_a_tensor_of_very_many_are_not_all_tried() -> None:
    """Fifteen of thirty axes are 155 million choices."""
    data, axes = GraphInput("x", (1,) * 30, "float32"), GraphInput("axes", (15,), "int64")
    model = graph_of([node("ReduceSum", "x axes", "y")], [data, axes])
    values = values_of_inputs(model, [data, axes])["axes"]
    assert values == Columns(0, tuple(Constant(axis) for axis in range(15, 30)))


@pytest.mark.parametrize(
    ("made", "count", "declared", "weights", "expected"),
    [
        (node("Reshape", "x size", "y"), 2, [12, 12], EMPTY, [12, 12]),
        (node("Reshape", "x size", "y"), 2, [12, "n"], EMPTY, [12, -1]),
        (node("Expand", "x size", "y"), 5, [7, 2, 3, 4, 6], EMPTY, [7, 2, 3, 4, 6]),
        (node("Expand", "one size", "y"), 2, [1, 3, 3], {"one": np.ones((1, 3, 1))}, [3, 3]),
        (node("ConstantOfShape", "size", "y"), 2, [3, 5], EMPTY, [3, 5]),
        (node("Tile", "x size", "y"), 4, [4, 3, 12, 6], EMPTY, [2, 1, 3, 1]),
        (node("Resize", "x _ _ size", "y"), 4, [2, 3, 8, 9], EMPTY, [2, 3, 8, 9]),
        (node("Pad", "x size", "y"), 8, [2, 3, 7, 8], EMPTY, [0, 0, 1, 1, 0, 0, 2, 1]),
        (node("Slice", "x size e", "y"), 4, [1, 2, 3, 4], {"e": [2, 3, 4, 6]}, [1, 1, 1, 2]),
        (node("Slice", "x b size a", "y"), 1, [2, 3, 4, 2], {"b": [1], "a": [3]}, [3]),
        (node("Slice", "x b size a k", "y"), 1, [2, 3, 4, 2], {"b": [0], "a": [3], "k": [2]}, [4]),
        (node("TopK", "x size", "y z"), 1, [2, 3, 4, 5], EMPTY, [5]),
        (node("OneHot", "i size v", "y"), 1, [2, 11], {"i": [1, 2], "v": [0.0, 1.0]}, [11]),
        (node("Range", "size b c", "y"), 0, [5], {"b": np.int64(15), "c": np.int64(3)}, [0]),
        (node("Range", "b size c", "y"), 0, [5], {"b": np.int64(15), "c": np.int64(-3)}, [0]),
        (node("Unsqueeze", "x size", "y"), 2, [2, 1, 3, 4, 1, 6], EMPTY, [1, 4]),
        (node("ReduceSum", "x size", "y", keepdims=0), 1, [2, 4, 6], EMPTY, [1]),
        (node("ReduceSum", "x size", "y"), 2, [1, 3, 1, 6], EMPTY, [0, 2]),
        (node("HannWindow", "size", "y"), 0, [400], EMPTY, [400]),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else None,
)
def test_a_size_gives_the_shape_that_the_model_declares(
    made: onnx.NodeProto,
    count: int,
    declared: list[int | str],
    weights: Mapping[str, Any],
    expected: list[float],
) -> None:
    inputs = [X, GraphInput("size", (count,) if count else (), "int64")]
    arrays = {key: np.asarray(value) for key, value in weights.items()}
    assert _drawn(_model(made, inputs, declared, arrays), inputs, "size") == expected


@pytest.mark.parametrize(
    ("made", "count", "weights", "expected"),
    [
        (node("Reshape", "x size", "y"), 2, EMPTY, [1, -1]),
        (node("Expand", "x size", "y"), 5, EMPTY, [1, 2, 3, 4, 6]),
        (node("Resize", "x _ _ size", "y"), 4, EMPTY, [2, 3, 8, 12]),
        (node("Slice", "x b size a", "y"), 2, {"b": [0, 0], "a": [-1, 1]}, [6, 3]),
        (node("Pad", "x size", "y", mode="reflect"), 8, EMPTY, [0, 0, 1, 1, 0, 0, 1, 1]),
        (node("Split", "x size", "y z", axis=3), 2, EMPTY, [3, 3]),
        (node("TopK", "x size", "y z"), 1, EMPTY, [6]),
        (node("Squeeze", "one size", "y"), 1, {"one": np.ones((2, 1, 3), np.float32)}, [1]),
        (node("CumSum", "x size", "y"), 1, EMPTY, [-1]),
        (node("Col2Im", "cols size block", "y", pads=[1, 0, 1, 0]), 2, COLUMNS, [2, 4]),
        (node("AffineGrid", "turn size", "y"), 4, {"turn": np.ones((2, 2, 3))}, [2, 1, 16, 16]),
        (
            node("MaxUnpool", "few places size", "y", kernel_shape=[2], strides=[2]),
            3,
            FEW,
            [1, 1, 6],
        ),
        (node("CenterCropPad", "x size", "y", axes=[-1, 0]), 2, EMPTY, [6, 2]),
        (node("DFT", "wave size", "y"), 0, {"wave": WAVE}, [64]),
        (node("STFT", "wave size window", "y"), 0, {"wave": WAVE, "window": np.ones(32)}, [8]),
        (node("STFT", "wave step _ size", "y"), 0, {"wave": WAVE, "step": np.array(4)}, [16]),
    ],
    ids=lambda value: value.op_type if isinstance(value, onnx.NodeProto) else None,
)
def test_onnx_runtime_takes_a_size_that_nobody_declares(
    made: onnx.NodeProto,
    count: int,
    weights: Mapping[str, Any],
    expected: list[float],
    tmp_path: Any,
) -> None:
    inputs = [X, GraphInput("size", (count,) if count else (), "int64")]
    arrays = {key: np.asarray(value) for key, value in weights.items()}
    model = _model(made, inputs, None, arrays)
    model.opset_import[0].version = 20
    assert _drawn(model, inputs, "size") == expected
    onnx.save(model, tmp_path / "m.onnx")
    rules = inferred_rules(model, inputs)
    feeds = seeded_inputs([each._replace(rule=rules[each.name]) for each in inputs], 1)
    assert ReferenceSession(tmp_path / "m.onnx").run(feeds)


def test_scales_of_a_resize_are_floats_that_give_the_declared_sides() -> None:
    inputs = [X, _sizes(4, "float32")]
    model = _model(node("Resize", "x _ size", "y"), inputs, [2, 3, 6, 3])
    assert _drawn(model, inputs, "size") == [1.0, 1.0, 1.5, 0.5]


def test_a_symbol_of_an_input_counts_as_declared() -> None:
    inputs = [X, _sizes(2)]
    model = _model(node("Reshape", "x size", "y"), inputs, ["rows", 6])
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "rows"
    assert _drawn(model, inputs, "size") == [4, 6]


def test_each_part_of_a_joined_shape_is_its_own_input() -> None:
    rows, columns = GraphInput("rows", (1,), "int64"), GraphInput("columns", (1,), "int64")
    model = _model(node("Reshape", "x shape", "y"), [X, rows, columns], [9, 16])
    model.graph.node.insert(0, node("Concat", "rows columns", "shape", axis=0))
    inputs = [X, rows, columns]
    assert [_drawn(model, inputs, name) for name in ("rows", "columns")] == [[9], [16]]


def test_the_classes_fit_a_depth_that_the_output_declares() -> None:
    inputs = [GraphInput("i", (2,), "int64"), _sizes(1)]
    weights = {"v": np.array([0.0, 1.0])}
    model = _model(node("OneHot", "i size v", "y"), inputs, [2, 11], weights)
    assert present(inferred_rules(model, inputs)["i"]).values == Integers(0, 10)


def test_thresholds_of_a_suppression_are_those_of_detectors() -> None:
    most, overlap = GraphInput("m", (1,), "int64"), GraphInput("o", (1,), "float32")
    boxes = GraphInput("b", (1, 5, 4), "float32")
    inputs = [boxes, boxes._replace(name="c", shape=(1, 2, 5)), most, overlap]
    model = _model(node("NonMaxSuppression", "b c m o", "y"), inputs, None)
    assert [_drawn(model, inputs, name) for name in ("m", "o")] == [[100], [0.45]]


def test_powers_of_integers_do_not_overflow() -> None:
    base = GraphInput("x", (4,), "int32")
    inputs = [base, base._replace(name="e")]
    rules = inferred_rules(_model(node("Pow", "x e", "y"), inputs, None), inputs)
    assert [rule.values for rule in rules.values() if rule] == [Integers(0, 3)] * 2


def test_an_exponent_that_becomes_a_float_is_not_limited() -> None:
    steps = GraphInput("e", (4,), "int64")
    model = graph_of([node("Cast", "e", "f", to=1), node("Pow", "f f", "y")], [steps])
    (rule,) = inferred_rules(model, [steps]).values()
    assert present(rule).values == Integers(0, 255)
