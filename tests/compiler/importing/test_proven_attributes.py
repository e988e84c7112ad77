"""Whatever the attributes of a node say, what takes its place gives the same numbers, without
optimizations on either side. Operators whose inputs change instead have tests of their own."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, TensorProto, helper

from tests.support.operator_models import operator_model, rewritten
from tunegate.errors import UnsupportedModelError

RANDOM = np.random.default_rng(0)
SHAPE = (2, 3, 4, 5)
AXIS = st.integers(-4, 3)
BIT = st.sampled_from([0, 1])
Draw = st.DrawFn


class Case(NamedTuple):
    """A node with the numbers that it is fed, and those that it has as constants."""

    node: Any
    feed: dict[str, Any]
    constants: dict[str, Any]
    opset: int = 21


def floats(*shape: int, dtype: str = "float32") -> Any:
    return RANDOM.standard_normal(shape).astype(dtype)


def options(draw: Draw, **strategies: Any) -> dict[str, Any]:
    """Some of these attributes; the others have their defaults."""
    return {name: draw(each) for name, each in strategies.items() if draw(st.booleans())}


def layer_norm(draw: Draw) -> Case:
    dtype = draw(st.sampled_from(["float32", "float64"]))
    axis = draw(AXIS)
    scale = draw(st.sampled_from([SHAPE[axis:], SHAPE[-1:], (1,)])) if axis % 4 else SHAPE
    with_bias = draw(st.booleans())
    names = ["x", "s", "b"][: 2 + with_bias]
    constants = {name: floats(*scale, dtype=dtype) for name in names[1:]}
    more = options(draw, epsilon=st.sampled_from([1e-5, 1e-2, 1.0]))
    outputs = ["y", "mean", "deviation"][: draw(st.sampled_from([1, 3]))]
    node = helper.make_node("LayerNormalization", names, outputs, axis=axis, **more)
    return Case(node, {"x": floats(*SHAPE, dtype=dtype)}, constants)


def rms_norm(draw: Draw) -> Case:
    dtype, axis = draw(st.sampled_from(["float32", "float64"])), draw(AXIS)
    scale = draw(st.sampled_from([SHAPE[axis:], SHAPE[-1:], (1,)])) if axis % 4 else SHAPE
    more = options(draw, epsilon=st.sampled_from([1e-5, 1e-2, 1.0]))
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"], axis=axis, **more)
    return Case(node, {"x": floats(*SHAPE, dtype=dtype)}, {"s": floats(*scale, dtype=dtype)}, 23)


def by_length(draw: Draw) -> Case:
    x = floats(*SHAPE) * draw(st.sampled_from([0, 1, 1e-3]))
    more = options(draw, axis=AXIS, p=st.sampled_from([1, 2]))
    return Case(helper.make_node("LpNormalization", ["x"], ["y"], **more), {"x": x}, {})


def by_distance(draw: Draw) -> Case:
    axes = draw(st.sampled_from([[0, 2, 3], [1], [-1], [0, 1, 2, 3], [2, 3]]))
    more = options(draw, axes=st.just(axes))
    x = floats(*SHAPE) + np.float32(draw(st.sampled_from([0, 10])))
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], **more)
    return Case(node, {"x": x}, {}, draw(st.sampled_from([13, 17, 21])))


def infinite(draw: Draw) -> Case:
    x = np.array([[1, np.inf], [-np.inf, np.nan]], "float32")
    more = options(draw, detect_positive=BIT, detect_negative=BIT)
    return Case(helper.make_node("IsInf", ["x"], ["y"], **more), {"x": x}, {})


def power(draw: Draw) -> Case:
    kinds = ["float32", "float64", "int32", "int64"]
    base, exponent = (draw(st.sampled_from(kinds)) for _ in range(2))
    shape = draw(st.sampled_from([(3,), (1,), (2, 1), ()]))
    x = RANDOM.uniform(1, 5, (2, 3)).astype(base)
    feed = {"x": x, "e": RANDOM.uniform(0, 4, shape).astype(exponent)}
    return Case(helper.make_node("Pow", ["x", "e"], ["y"]), feed, {})


def one_hot(draw: Draw) -> Case:
    kind = draw(st.sampled_from(["float32", "int64"]))
    constants = {"d": np.array(4), "v": np.array([2, 7], kind)}
    indices = RANDOM.integers(-5, 6, (2, 3))
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], axis=draw(st.integers(-3, 2)))
    return Case(node, {"x": indices}, constants)


def triangle(draw: Draw) -> Case:
    kind = draw(st.sampled_from(["float32", "int64"]))
    feed = {"x": (10 * floats(2, 3, 4)).astype(kind), "k": np.array(draw(st.integers(-4, 4)))}
    return Case(helper.make_node("Trilu", ["x", "k"], ["y"], **options(draw, upper=BIT)), feed, {})


def eye(draw: Draw) -> Case:
    kinds = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.INT32]
    more = options(draw, k=st.integers(-4, 4), dtype=st.sampled_from(kinds))
    return Case(helper.make_node("EyeLike", ["x"], ["y"], **more), {"x": floats(3, 4)}, {})


def dropout(draw: Draw) -> Case:
    outputs = draw(st.sampled_from([["y"], ["y", "mask"]]))
    constants = {"r": np.float32(0.5), "t": np.array(False)}
    names = ["x", "r", "t"][: draw(st.integers(1, 3))]
    return Case(
        helper.make_node("Dropout", names, outputs, **options(draw, seed=st.just(3))),
        {"x": floats(3, 4)},
        {name: constants[name] for name in names[1:]},
    )


def extreme(draw: Draw) -> Case:
    operator = draw(st.sampled_from(["ReduceMax", "ReduceMin", "ReduceMean", "ReduceL2"]))
    axes = draw(st.sampled_from([[], [0], [-1], [1, 2], [-4, 3]]))
    more = options(draw, keepdims=BIT)
    if draw(st.booleans()):
        node = helper.make_node(operator, ["x"], ["y"], **more)
        node.attribute.append(helper.make_attribute("axes", axes, attr_type=AttributeProto.INTS))
        return Case(node, {"x": floats(*SHAPE)}, {}, 13)
    more |= options(draw, noop_with_empty_axes=BIT)
    node = helper.make_node(operator, ["x", "a"], ["y"], **more)
    return Case(node, {"x": floats(*SHAPE)}, {"a": np.array(axes, "int64")})


def transposed(draw: Draw) -> Case:
    group, stride = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2, 3]))
    more = options(
        draw,
        dilations=st.sampled_from([[1, 1], [2, 1]]),
        auto_pad=st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER"]),
    )
    full = [stride * (4 - 1) + 2 * more.get("dilations", [1, 1])[at] + 1 for at in range(2)]
    shape = [each - draw(st.integers(0, 2)) for each in full]
    node = helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["y"],
        strides=[stride, stride],
        group=group,
        output_shape=shape,
        **more,
    )
    return Case(node, {"x": floats(1, 4, 4, 4)}, {"w": floats(4, 3, 3, 3)})


def of_shape(draw: Draw) -> Case:
    value = np.array([draw(st.integers(0, 3))], draw(st.sampled_from(["float32", "int64", "bool"])))
    more = options(draw, value=st.just(helper.make_tensor("v", *_tensor(value))))
    return Case(
        helper.make_node("ConstantOfShape", ["x"], ["y"], **more), {"x": np.array([2, 3])}, {}
    )


def _tensor(value: Any) -> tuple[int, list[int], list[Any]]:
    return helper.np_dtype_to_tensor_dtype(value.dtype), [1], value.tolist()


def parts(draw: Draw) -> Case:
    axis = draw(AXIS)
    first = draw(st.integers(0, SHAPE[axis]))
    feed = {"x": floats(*SHAPE), "s": np.array([first, SHAPE[axis] - first])}
    return Case(helper.make_node("Split", ["x", "s"], ["y", "z"], axis=axis), feed, {})


def best(draw: Draw) -> Case:
    axis = draw(AXIS)
    more = options(draw, largest=BIT) | {"axis": axis}
    feed = {"x": floats(*SHAPE), "k": np.array([draw(st.integers(1, SHAPE[axis]))])}
    return Case(helper.make_node("TopK", ["x", "k"], ["y", "z"], **more), feed, {})


def grid(draw: Draw) -> Case:
    feed = {"x": floats(2, 2, 3), "s": np.array([2, 3, 4, 5])}
    node = helper.make_node("AffineGrid", ["x", "s"], ["y"], **options(draw, align_corners=BIT))
    return Case(node, feed, {})


def cells(draw: Draw) -> Case:
    operator, gates = draw(st.sampled_from([("LSTM", 4), ("GRU", 3), ("RNN", 1)]))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 1 + (direction == "bidirectional")
    more = options(draw, clip=st.sampled_from([0.3, 3.0]))
    if operator == "GRU":
        more |= options(draw, linear_before_reset=BIT)
    if operator == "LSTM":
        more |= options(draw, input_forget=BIT)
    x = floats(3, 2, 5)
    constants = {"w": floats(count, gates * 4, 5), "r": floats(count, gates * 4, 4)}
    node = helper.make_node(
        operator, ["x", "w", "r"], ["y", "h"], hidden_size=4, direction=direction, **more
    )
    return Case(node, {"x": x}, constants)


def quantized(
    draw: Draw, x: tuple[int, ...], w: tuple[int, ...], step: float, weight_zero: int | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The feed of a product of quantized numbers, and its constants; six are the channels."""
    kinds = draw(st.sampled_from([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")]))
    channels = (6,) if draw(st.booleans()) else ()
    limits = [np.iinfo(kind) for kind in kinds]
    numbers, weights = (
        RANDOM.integers(each.min, each.max + 1, shape).astype(kind)
        for each, shape, kind in zip(limits, (x, w), kinds, strict=True)
    )
    zeros = [draw(st.integers(int(each.min), int(each.max))) for each in limits]
    return {"x": numbers}, {
        "xs": np.float32(0.02),
        "xz": np.array(zeros[0], kinds[0]),
        "w": weights,
        "ws": RANDOM.uniform(0.01, 0.1, channels).astype("float32"),
        "wz": np.full(channels, zeros[1] if weight_zero is None else weight_zero, kinds[1]),
        "ys": np.float32(step),
        "yz": np.array(draw(st.integers(0, 100)), kinds[0]),
    }


def quantized_product(draw: Draw) -> Case:
    feed, constants = quantized(draw, (3, 5), (5, 6), 0.5)
    return Case(helper.make_node("QLinearMatMul", ["x", *constants], ["y"]), feed, constants)


def quantized_convolution(draw: Draw) -> Case:
    group = draw(st.sampled_from([1, 2]))
    feed, constants = quantized(draw, (1, 4, 6, 6), (6, 4 // group, 3, 3), 0.9, weight_zero=0)
    if draw(st.booleans()):
        constants["b"] = RANDOM.integers(-999, 999, 6).astype("int32")
    more = options(
        draw,
        pads=st.sampled_from([[1, 1, 1, 1], [0, 1, 2, 0]]),
        strides=st.sampled_from([[2, 2], [1, 2]]),
        dilations=st.sampled_from([[2, 1]]),
    )
    node = helper.make_node("QLinearConv", ["x", *constants], ["y"], group=group, **more)
    return Case(node, feed, constants)


def dynamic(draw: Draw) -> Case:
    x = floats(3, 4) * np.float32(draw(st.sampled_from([0, 1]))) + np.float32(
        draw(st.sampled_from([-3, 0, 3]))
    )
    return Case(helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"]), {"x": x}, {})


REPLACED = {by_length, by_distance, one_hot, triangle, quantized_product, dynamic}
CASES = {
    each.__name__: each
    for each in (
        *(layer_norm, rms_norm, by_length, by_distance, infinite, power, one_hot, triangle, eye),
        *(dropout, extreme, transposed, of_shape, parts, best, grid, cells),
        *(quantized_product, quantized_convolution, dynamic),
    )
}


@pytest.mark.parametrize("draw_case", CASES.values(), ids=CASES.keys())
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_what_takes_the_place_of_a_node_has_its_attributes(
    draw_case: Callable[[Draw], Case], data: st.DataObject
) -> None:
    case = data.draw(st.composite(draw_case)())
    model = operator_model(case.node, case.feed, case.constants, opset=case.opset)
    with suppress(UnsupportedModelError):
        operators = rewritten(model, case.feed)
        assert draw_case not in REPLACED or case.node.op_type not in operators
