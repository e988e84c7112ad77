"""Activations with the arguments of the node, or their defaults."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper
from tvm.relax.frontend.onnx import from_onnx

from tests.support.operator_models import of_one, operator_model, outputs_of, replaced, rewritten
from tests.support.present import present
from tests.support.small_onnx import one_node_model
from tunegate.compiler.importing.graph_view import Replacement, attribute
from tunegate.compiler.importing.recurrent import activations_of, clip_before
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError


def written(**options: Any) -> list[Any] | None:
    """The node that the first activation of an RNN becomes, behind its clip."""
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], **options)
    found = activations_of(node, ("Tanh",), 1)
    if found is None:
        return None
    new = Replacement(node)
    clip_before(node, found[0])(new, "x")
    return [made for made in new.nodes if made.op_type != "Constant"]


def test_the_default_is_that_of_the_operator() -> None:
    assert [node.op_type for node in present(written())] == ["Tanh"]


def test_arguments_are_taken_from_the_node_and_the_rest_has_defaults() -> None:
    nodes = present(written(activations=["hardsigmoid"], activation_alpha=[0.5]))
    assert attribute(nodes[0], "alpha") == pytest.approx(0.5)
    assert attribute(nodes[0], "beta") == pytest.approx(0.5)


def test_a_clip_comes_first() -> None:
    assert [node.op_type for node in present(written(clip=2.0))] == ["Clip", "Tanh"]


# Operators on single numbers.


@pytest.mark.parametrize(
    ("base", "exponent"),
    [("int32", "int32"), ("int64", "float32"), ("float32", "int64"), ("int32", "int64")],
)
def test_powers_of_whole_numbers_are_exact(base: str, exponent: str) -> None:
    feed = {"x": np.array([-3, 2, 0, 7], base), "p": np.array([3, 10, 0, 2], exponent)}
    replaced("Pow", feed)


@pytest.mark.parametrize("exponent", [np.array(2), np.array([[3]]), np.array(3, np.float32)])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_constant_square_or_cube_keeps_each_digit(kind: str, exponent: Any) -> None:
    feed = {"x": np.array([579266, -513459, 208065], kind)}
    model = of_one("Pow", feed, {"p": exponent})
    (ours,), (theirs,) = outputs_of(importable(model), feed), outputs_of(model, feed)
    assert np.array_equal(ours, theirs)


def test_a_celu_of_a_number_is_a_number_and_a_constant_is_a_tensor() -> None:
    """ONNX's definition makes a list of it, and TVM reads no other constants."""
    x = {"x": np.array(-0.5, np.float32)}
    unit = of_one("Celu", x, alpha=2.0)
    (ours,), (theirs,) = outputs_of(importable(unit), x), outputs_of(unit, x)
    assert (ours.shape, ours) == ((), pytest.approx(theirs))
    listed = importable(of_one("Constant", {}, value_ints=[1]))
    assert [each.name for each in listed.graph.initializer] == ["y"]


@pytest.mark.parametrize(("axis", "kept"), [(None, 5), (0, 2), (-1, 3)])
def test_a_compress_by_a_constant_picks_its_places(axis: int | None, kept: int) -> None:
    feed, condition = {"x": np.arange(6.0).reshape(2, 3)}, {"c": np.arange(kept) % 2 == 0}
    assert "Gather" in replaced("Compress", feed, condition, axis=axis)


# Normalizations over several axes, and by length.

DATA = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("axis", "outputs", "dtype", "operator"),
    [
        *((axis, "y", "float32", "Reshape") for axis in (0, 1)),
        (2, "y", "float32", "LayerNormalization"),
        *(
            (axis, "ymd", dtype, "ReduceMean")
            for axis in (0, 2)
            for dtype in ("float32", "float64")
        ),
        (1, "y", "float64", "ReduceMean"),
    ],
)
def test_a_normalization_is_one_of_rows_or_simple_operators(
    axis: int, outputs: str, dtype: str, operator: str
) -> None:
    """TVM would not turn its weights where the image before it has its channels last."""
    data = DATA.astype(dtype)
    part = data[(0,) * axis]
    feed = {"x": data + 8, "s": part + 2, "b": part * 3}
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], list(outputs), axis=axis)
    operators = rewritten(operator_model(node, feed), feed)
    assert operator in operators
    assert ("LayerNormalization" in operators) == (operator != "ReduceMean")


@pytest.mark.parametrize(("axis", "dtype"), [(0, "float32"), (-3, "float64")])
def test_so_is_one_by_the_root_of_squares(axis: int, dtype: str) -> None:
    feed = {"x": DATA.astype(dtype), "s": (DATA + 2).astype(dtype)}
    operators = replaced("RMSNormalization", feed, opset=23, axis=axis, epsilon=0.1)
    assert ("RMSNormalization" in operators) == (dtype == "float32")


# Transposed convolutions to extents that the node says, beside ONNX Runtime.

RANDOM = np.random.default_rng(0)
FEED = {"x": RANDOM.standard_normal((1, 2, 3, 4)).astype(np.float32)}
WEIGHTS = {"w": RANDOM.standard_normal((2, 3, 3, 3)).astype(np.float32)}


def model(**options: Any) -> Any:
    return of_one("ConvTranspose", FEED, WEIGHTS, strides=[3, 2], **options)


@pytest.mark.parametrize("shape", [[10, 9], [9, 8], [6, 5], [11, 10]])
@pytest.mark.parametrize("way", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_pads_give_the_same_numbers(shape: list[int], way: str) -> None:
    before = model(output_shape=shape, auto_pad=way)
    rewritten(before, FEED)
    assert attribute(importable(before).graph.node[0], "output_shape") is None


def test_extents_that_no_pads_give_are_refused() -> None:
    beyond = model(output_shape=[9, 9])
    (shape,) = [each for each in beyond.graph.node[0].attribute if each.name == "output_shape"]
    shape.ints[:] = [20, 20]
    with pytest.raises(UnsupportedModelError, match="ConvTranspose"):
        importable(beyond)


# Operators that pick or mark places, by inputs.


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_one_hot_marks_places_from_either_end(axis: int, dtype: str) -> None:
    feed = {
        "i": np.array([[0, 4, -1], [-5, 9, 2]], dtype),
        "d": np.array([5], dtype),
        "v": np.array([2, 3], np.float32),
    }
    assert "OneHot" not in replaced("OneHot", feed, axis=axis)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_one_hot_has_the_type_of_its_values(dtype: str) -> None:
    feed = {"i": np.array([[0, 4, -1], [-5, 9, 2]], "int64")}
    constants = {"d": np.array(5, "int64"), "v": np.array([0, 1], dtype)}
    model = of_one("OneHot", feed, constants)
    imported = from_onnx(importable(model), opset=model.opset_import[0].version)
    assert str(imported["main"].ret_ty.dtype.dtype) == dtype
    assert "OneHot" not in rewritten(model, feed)


def test_features_are_picked_from_the_last_axis() -> None:
    feed = {"x": DATA[0], "i": np.array([[3, 0]], np.int64)}
    assert "ArrayFeatureExtractor" not in replaced(
        "ArrayFeatureExtractor", feed, domain="ai.onnx.ml"
    )


def test_a_dropout_that_drops_nothing_shows_so() -> None:
    feed = {"x": DATA}
    assert "Dropout" not in replaced("Dropout", feed, outputs="y m")
    constants = {"r": np.float32(0.5), "t": np.array(True)}
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y"])
    with pytest.raises(UnsupportedModelError, match="it is training, and drops at random"):
        importable(operator_model(node, feed, constants))
    fed = {**feed, "t": np.array(False)}
    with pytest.raises(UnsupportedModelError, match="whether it is training is an input"):
        importable(operator_model(node, fed, {"r": np.float32(0.5)}))


def test_a_slice_by_attributes_alone_is_imported() -> None:
    """TVM's importer asks for axes there."""
    feed = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    model = of_one("Slice", feed, opset=9, starts=[1, 1], ends=[3, 2])
    assert rewritten(model, feed)[-1] == "Slice"
    assert from_onnx(importable(model), keep_params_in_input=False)


# Operators that ONNX defines by others.


def drawn(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("options", [{}, {"is_causal": 1}, {"scale": 0.3, "softcap": 2.0}])
@pytest.mark.parametrize("heads", [2, 4])
def test_attention_with_and_without_what_came_before(options: dict[str, Any], heads: int) -> None:
    feed = {"q": drawn(1, 4, 3, 8), "k": drawn(1, heads, 5, 8), "v": drawn(1, heads, 5, 8)}
    assert "Attention" not in replaced("Attention", feed, opset=23, **options)
    feed |= {"pk": drawn(1, heads, 2, 8), "pv": drawn(1, heads, 2, 8)}
    names = ["q", "k", "v", "", "pk", "pv"]
    node = helper.make_node("Attention", names, ["y", "nk", "nv"], **options)
    assert "Attention" not in rewritten(operator_model(node, feed, opset=23), feed)


def test_attention_of_rows_with_a_mask() -> None:
    feed = {"q": drawn(1, 3, 8), "k": drawn(1, 5, 8), "v": drawn(1, 5, 8), "m": drawn(3, 5)}
    assert "Attention" not in replaced("Attention", feed, opset=23, q_num_heads=2, kv_num_heads=2)


def test_attention_that_shows_masked_scores_is_refused_in_a_sentence() -> None:
    feed = {"q": drawn(1, 2, 3, 4), "k": drawn(1, 2, 3, 4), "v": drawn(1, 2, 3, 4)}
    node = helper.make_node(
        "Attention", ["q", "k", "v"], ["y", "", "", "s"], is_causal=1, qk_matmul_output_mode=1
    )
    with pytest.raises(UnsupportedModelError) as caught:
        importable(operator_model(node, feed, opset=23))
    assert str(caught.value) == (
        "operator Attention (the node that makes y) is not supported by the compiler: its scores "
        "are an output, and it masks some of them"
    )


@pytest.mark.parametrize("interleaved", [0, 1])
def test_a_rotary_embedding(interleaved: int) -> None:
    feed = {"x": drawn(1, 2, 3, 8), "c": drawn(1, 3, 4), "s": drawn(1, 3, 4)}
    assert "RotaryEmbedding" not in replaced(
        "RotaryEmbedding", feed, opset=23, interleaved=interleaved
    )


# Nodes that stand for another one.

NODE = helper.make_node("Odd", ["x"], ["y"], name="here")


def test_names_begin_with_those_of_the_node_and_are_each_used_once() -> None:
    new = Replacement(NODE)
    new.add("Add", [new.constant(1, np.float32), new.cast("x", 1)], to="y")
    outputs = [name for node in new.nodes for name in node.output]
    assert len(set(outputs)) == len(outputs)
    assert all(name.startswith("y") for name in outputs)
    assert all(node.name.startswith("here/") for node in new.nodes)
    assert outputs[-1] == "y"


def test_a_node_without_a_name_lends_its_output() -> None:
    new = Replacement(helper.make_node("Odd", ["x"], ["", "z"]))
    assert new.add_slice("x", 0, 1, 2).startswith("z/")


# A model is put in other words only where that is needed.


def test_an_operator_that_nobody_knows_stays() -> None:
    model = one_node_model("Sigmoid")
    model.graph.node[0].op_type = "Odd"
    assert importable(model) is model


def test_what_a_rule_writes_is_folded_and_looked_at_again() -> None:
    feed = {"x": np.ones((2, 3, 4), np.float32)}
    scale = {"s": np.full((2, 3, 4), 2, np.float32)}
    operators = replaced("LayerNormalization", feed, scale, outputs="y m", axis=0)
    assert "Shape" not in operators
    assert "Constant" not in operators


def test_inputs_and_outputs_keep_their_names_and_order() -> None:
    feed = {"x": np.ones((2, 3), np.float32), "s": np.array([3, 2], np.int64)}
    after = importable(of_one("Reshape", feed))
    assert [value.name for value in after.graph.input] == ["x", "s"]
    assert [value.name for value in after.graph.output] == ["y"]
    onnx.checker.check_model(after)


# Products of quantized numbers, beside ONNX Runtime's.

SCALARS = {
    "xs": np.array(0.02, np.float32),
    "xz": np.array(120, np.uint8),
    "ys": np.array(0.3, np.float32),
    "yz": np.array(100, np.uint8),
}
NAMES = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]


def whole(*shape: int, dtype: str = "uint8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("options", [{}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, {"group": 2}])
@pytest.mark.parametrize("channels", [(), (4,)])
def test_a_sum_is_scaled_and_rounded(options: dict[str, Any], channels: tuple[int, ...]) -> None:
    feed = {"x": whole(1, 2, 5, 5)}
    scale = RANDOM.uniform(0.01, 0.02, channels).astype(np.float32)
    weights = whole(4, 2 // options.get("group", 1), 3, 3, dtype="int8")
    constants = {
        **SCALARS,
        "w": weights,
        "ws": scale,
        "wz": np.zeros(channels, np.int8),
        "b": RANDOM.integers(-900, 900, 4).astype(np.int32),
    }
    node = helper.make_node("QLinearConv", [*NAMES, "b"], ["y"], **options)
    assert "ConvInteger" in rewritten(operator_model(node, feed, constants), feed)


def test_sums_saturate_in_an_old_operator_set_too() -> None:
    """There, Clip has its bounds as attributes."""
    feed = {"x": whole(1, 2, 9)}
    constants = {
        **SCALARS,
        "ys": np.array(0.01, np.float32),
        "w": whole(4, 2, 3, dtype="int8"),
        "ws": np.array(0.02, np.float32),
        "wz": np.array(0, np.int8),
    }
    node = helper.make_node("QLinearConv", NAMES, ["y"])
    assert "Clip" in rewritten(operator_model(node, feed, constants, opset=10), feed)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize(
    ("axis", "block", "scales"), [(0, 4, (2, 6)), (1, 3, (8, 2)), (1, 0, (6,)), (0, 0, ())]
)
def test_weights_of_four_bits_become_floats(
    axis: int, block: int, scales: tuple[int, ...], dtype: str
) -> None:
    low = -8 if dtype == "int4" else 0
    packed, zero = (
        RANDOM.integers(low, low + 16, shape).astype(getattr(ml_dtypes, dtype))
        for shape in ((8, 6), scales)
    )
    constants = {"w": packed, "s": RANDOM.random(scales, np.float32), "z": zero}
    more: dict[str, Any] = {"block_size": block} if block else {"output_dtype": TensorProto.FLOAT16}
    assert "DequantizeLinear" not in replaced(
        "DequantizeLinear", {}, constants, opset=23, axis=axis, **more
    )


def test_a_pad_fills_with_a_number_that_is_an_input() -> None:
    feed = {"x": drawn(3, 4), "fill": np.array(7, np.float32)}
    node = helper.make_node("Pad", ["x", "pads", "fill"], ["y"])
    model = operator_model(node, feed, {"pads": np.array([1, 0, 2, 3])})
    assert "Pad" not in rewritten(model, feed)


def test_a_resize_that_smooths_before_it_shrinks_is_refused() -> None:
    feed = {"x": drawn(1, 1, 8, 8)}
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear", antialias=1)
    constants = {"scales": np.array([1, 1, 0.5, 0.5], np.float32)}
    with pytest.raises(UnsupportedModelError, match="it has antialiasing"):
        rewritten(operator_model(node, feed, constants), feed)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_an_image_is_resized_by_its_scales_and_not_by_the_quotients_of_extents(mode: str) -> None:
    feed = {"x": drawn(1, 2, 5, 6)}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
    odd, whole = (np.array([1, 1, *each], np.float32) for each in ((1.5, 0.4), (2, 3)))
    assert "Resize" not in rewritten(operator_model(node, feed, {"s": odd}), feed)
    assert rewritten(operator_model(node, feed, {"s": whole}), feed) == ["Resize"]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("size", [1, 4])
def test_one_row_lies_at_the_first_where_corners_are_kept(mode: str, size: int) -> None:
    feed = {"x": drawn(1, 2, 5, 6)}
    options = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    node = helper.make_node("Resize", ["x", "", "", "z"], ["y"], **options)
    rewritten(operator_model(node, feed, {"z": np.array([1, 2, 1, size])}), feed)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("opset", "scales"),
    [(9, (2, 2)), (9, (1.5, 2.5)), (10, (2, 3)), (10, (0.5, 0.7)), (10, (0.3, 1))],
)
def test_an_older_operator_set_resizes_from_the_first_corner(
    opset: int, scales: tuple[float, ...], mode: str
) -> None:
    """ONNX's converter takes it for one that resizes around the middle."""
    operator = "Upsample" if opset == 9 else "Resize"
    feed, constants = {"x": drawn(1, 2, 7, 6)}, {"s": np.array([1, 1, *scales], np.float32)}
    assert "Upsample" not in replaced(operator, feed, constants, opset=opset, mode=mode)


def test_what_shrinks_one_way_and_grows_the_other_is_refused_there() -> None:
    constants = {"s": np.array([1, 1, 0.5, 2], np.float32)}
    model = of_one("Resize", {"x": drawn(1, 2, 6, 6)}, constants, opset=10)
    with pytest.raises(UnsupportedModelError, match="may shrink one axis and stretch another"):
        importable(model)


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [("float16", "linear"), ("float16", "nearest"), ("uint8", "nearest"), ("int32", "nearest")],
)
@pytest.mark.parametrize("scales", [[1, 1.5, 0.5], [1, 1, 2, 1.5, 2]])
def test_three_or_five_axes_of_other_types_are_resized(
    dtype: str, mode: str, scales: list[float]
) -> None:
    feed = {"x": (20 * drawn(*([1, 3, 4, 2, 3][: len(scales)]))).astype(dtype)}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode)
    model = operator_model(node, feed, {"s": np.array(scales, np.float32)})
    assert "Resize" not in rewritten(model, feed)


def test_what_tvm_computes_otherwise_is_refused() -> None:
    whole = {"x": np.zeros((1, 4, 4), np.uint8)}
    scales = {"s": np.array([1, 1.5, 1], np.float32)}
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    with pytest.raises(UnsupportedModelError, match="uint8 is resized only in images"):
        importable(operator_model(resize, whole, scales))
    few, none = (
        of_one("TopK", whole, {"k": np.array([count])}, outputs="y z", sorted=0) for count in (2, 0)
    )
    assert attribute(importable(few).graph.node[0], "sorted") is None
    with pytest.raises(UnsupportedModelError, match="its result is empty"):
        importable(none)


IN_BRANCH = """If(c) <then_branch = t () => (float[2,3,4] b) { b = Hardmax(x) },
    else_branch = e () => (float[2,3,4] d) { d = Neg(x) }>"""
OF_BATCH = "Scan<num_scan_inputs = 1, body = b (float[4] i) => (float[4] o) { o = Neg(i) }>(, x)"


@pytest.mark.parametrize(
    ("opset", "node", "problem"),
    [(11, IN_BRANCH, "its Hardmax is of an older"), (8, OF_BATCH, "of an operator set before 9")],
)
def test_what_no_rule_reaches_in_an_older_operator_set_is_refused(
    opset: int, node: str, problem: str
) -> None:
    text = f'<ir_version: 7, opset_import: ["": {opset}]> m (bool c, float[2,3,4] x)'
    model = onnx.parser.parse_model(f"{text} => (float[2,3,4] y) {{ y = {node} }}")
    with pytest.raises(UnsupportedModelError, match=problem):
        importable(model)


@pytest.mark.parametrize("pads", [[-1, 2, 1, -1], [0, 9, 4, 0], [1, 2, 3, 4]])
def test_what_wraps_more_than_an_axis_or_also_cuts_reads_no_other_numbers(pads: list[int]) -> None:
    node = helper.make_node("Pad", ["x", "p", "", "axes"], ["y"], mode="wrap")
    constants = {"p": np.array(pads), "axes": np.array([0, -1])}
    operators = rewritten(operator_model(node, {"x": drawn(3, 4)}, constants), {"x": drawn(3, 4)})
    assert ("Pad" in operators) == (pads == [1, 2, 3, 4])


@pytest.mark.parametrize("opset", [7, 10, 12])
@pytest.mark.parametrize("options", [{}, {"axis": 0}])
def test_what_an_older_operator_set_means_is_kept(opset: int, options: dict[str, Any]) -> None:
    """Hardmax went over all axes from its own on, and masks of Dropout were zero."""
    feed = {"x": drawn(2, 3, 4)}
    hard = of_one("Hardmax", feed, opset=opset, outputs="h", **options)
    mask = of_one("Dropout", feed, opset=opset, outputs="y m")
    hard.graph.node.extend(mask.graph.node)
    hard.graph.output.extend(mask.graph.output)
    assert "Dropout" not in rewritten(hard, feed)


@pytest.mark.parametrize("way", ["add", "mul"])
def test_booleans_are_scattered(way: str) -> None:
    feed = {"x": drawn(4) > 0, "u": np.array([True, False, True])}
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=way)
    model = operator_model(node, feed, {"i": np.array([[0], [0], [3]])})
    assert rewritten(model, feed) == ["Cast", "Cast", "ScatterND", "Cast"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_float16_is_quantized_in_float32(dtype: str) -> None:
    feed = {"x": (40 * drawn(5, 6)).astype(np.float16)}
    constants = {"s": np.array(0.3, np.float16), "z": np.array(7, dtype)}
    assert "Cast" in replaced("QuantizeLinear", feed, constants)


@pytest.mark.parametrize("way", ["half_pixel", "output_half_pixel"])
def test_regions_are_scaled_before_they_are_aligned(way: str) -> None:
    feed = {"x": drawn(2, 3, 6, 7), "r": np.array([[0, 1, 5, 7], [2, 2, 9, 9]], np.float32)}
    options: dict[str, Any] = {"spatial_scale": 0.5, "output_height": 2}
    options["coordinate_transformation_mode"] = way
    model = of_one("RoiAlign", feed, {"b": np.array([1, 0])}, **options)
    assert "Mul" in rewritten(model, feed)
    assert attribute(importable(model).graph.node[-1], "spatial_scale") == 1
    model.graph.node[0].attribute.append(helper.make_attribute("mode", "max"))
    with pytest.raises(UnsupportedModelError, match="it takes a maximum"):
        importable(model)


@pytest.mark.parametrize(
    ("shape", "image", "block", "options"),
    [
        ((2, 12, 4), (4, 4), (2, 2), {"strides": [2, 2]}),
        ((1, 6, 6), (4, 6), (2, 3), {"pads": [1, 0, 0, 1], "strides": [2, 1], "dilations": [2, 2]}),
        ((1, 3, 5), (11,), (3,), {"strides": [2]}),
    ],
)
def test_columns_become_an_image(
    shape: tuple[int, ...], image: tuple[int, ...], block: tuple[int, ...], options: dict[str, Any]
) -> None:
    feed = {"x": drawn(*shape)}
    model = of_one("Col2Im", feed, {"image": np.array(image), "block": np.array(block)}, **options)
    assert "Col2Im" not in rewritten(model, feed)


@pytest.mark.parametrize(("start", "end", "step"), [(0, 4, -1), (3, 1, 1), (-1, -3, 1)])
def test_a_slice_that_ends_before_it_begins_is_refused(start: int, end: int, step: int) -> None:
    feed = {"x": drawn(3, 4)}
    numbers = zip("seat", (start, end, -1, step), strict=True)
    model = of_one("Slice", feed, {name: np.array([value]) for name, value in numbers}, name="cut")
    with pytest.raises(UnsupportedModelError, match=r'Slice \(node "cut"\) .*its result is empty'):
        importable(model)


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceL2", "ReduceLogSum"])
@pytest.mark.parametrize(("dtype", "opset"), [("int32", 11), ("int64", 18)])
def test_fractions_of_whole_numbers_are_cut(operator: str, dtype: str, opset: int) -> None:
    sign = -1 if operator == "ReduceMean" else 1
    feed = {"x": np.array([[7, 1, 3], [5, 6, 2]], dtype) * np.array(sign, dtype)}
    assert "Cast" in replaced(operator, feed, opset=opset, keepdims=0)


def test_exponents_of_whole_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="its numbers are int32"):
        importable(of_one("ReduceLogSumExp", {"x": np.array([1, 2], np.int32)}))


def test_random_numbers_are_refused_as_such() -> None:
    with pytest.raises(UnsupportedModelError, match="its numbers are random"):
        importable(of_one("RandomUniformLike", {"x": drawn(2)}))
