"""The importer names what neither TVM nor we know."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node
from tvm import relax

from tests.compiler.importing.fused_module import fused_module, imported, one_call
from tests.support.operator_models import of_one, operator_model, outputs_of, replaced, rewritten
from tests.support.prepared_models import prepared_model
from tests.support.small_onnx import (
    chain_model,
    conv_model,
    matmul_model,
    model_of,
    one_node_model,
    part_of,
    save,
    typed,
)
from tests.support.worker_requests import build_request
from tunegate.compiler import opening
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.compile import handle_request
from tunegate.compiler.importing.graph_view import GraphView, sort_nodes
from tunegate.compiler.importing.import_onnx import import_model
from tunegate.compiler.importing.node_errors import NodeError, fault_of_shapes, importing, shorten
from tunegate.compiler.importing.rewriting import importable
from tunegate.compiler.loader import TvmArtifact
from tunegate.compiler.opening import import_in_layout, unbuildable
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import Built


def test_inputs_have_names_that_are_names_in_c_and_each_its_own() -> None:
    names = ("gpu_0/data_0", "gpu_0.data_0")
    model = model_of([make_node("Add", names, ["y"])], {name: [4] for name in names}, {"y": [4]})
    first, second = (str(each.name) for each in import_model(model)["main"].params)
    assert first == "gpu_0_data_0"
    assert second.isidentifier()
    assert second != first


def test_an_operator_that_nobody_knows_is_named() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="Det"):
        import_model(one_node_model("Det"))


# What TVM would build wrong is refused by name.


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_a_pooling_of_less_than_its_window_is_refused(operator: str) -> None:
    feed = {"x": np.zeros((1, 1, 4, 2), np.float32)}
    with pytest.raises(NodeError, match="its window is larger than its image"):
        import_model(of_one(operator, feed, kernel_shape=[3, 3], strides=[2, 2]))


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_windows_whose_pads_onnx_runtime_finds_otherwise_are_refused(operator: str) -> None:
    feed = {"x": np.zeros((1, 1, 8), np.float32)}
    size: dict[str, Any] = {"kernel_shape": [3]}
    outputs = ["y", ""][: 1 + (operator == "MaxPool")]  # nobody asks for positions
    assert import_model(operator_model(make_node(operator, ["x"], outputs, **size), feed))
    model = of_one(operator, feed, dilations=[2], auto_pad="SAME_UPPER", **size)
    assert outputs_of(model, feed)[0].shape == (1, 1, 6)  # ONNX has 8, a window for each stride
    with pytest.raises(NodeError, match="ONNX Runtime leaves its dilations out of the pads"):
        import_model(model)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_casts_to_eight_bits_and_back_are_refused(kind: str) -> None:
    """TVM takes infinity for 1 there, and zero for a number."""
    to, back = getattr(TensorProto, kind), TensorProto.FLOAT
    for of, after in ((back, to), (to, back)):
        node = make_node("Cast", ["x"], ["y"], to=after)
        model = model_of([node], {"x": typed(of, [4])}, {"y": typed(after, [4])})
        with pytest.raises(NodeError, match="it casts numbers of float8_e"):
            import_model(model)


def test_an_output_that_is_no_tensor_is_named() -> None:
    model: onnx.ModelProto = one_node_model("SequenceConstruct")
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [4, 4])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    with pytest.raises(UnsupportedModelError, match="output y"):
        importable(model)


def test_an_output_without_numbers_is_named_where_it_is_a_constant() -> None:
    """A build would save it, and never load."""
    model = model_of([], {"x": [4]}, {"y": [0]}, {"y": np.zeros(0, np.float32)})
    with pytest.raises(UnsupportedModelError, match="output y is a constant without numbers"):
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
    model = of_one(operator, feed)
    rewritten(model, feed)
    view = GraphView(importable(model))
    assert all(view.constant(n.input[1]) is not None for n in importable(model).graph.node)


def test_a_shape_with_a_zero_is_taken_by_the_letter() -> None:
    feed = {"x": np.zeros((0, 4), np.float32), "s": np.array([2, 0], np.int64)}
    replaced("Reshape", feed, allowzero=1)


def test_parts_and_best_places_are_counted_in_the_result() -> None:
    feed = {"x": DATA, "s": np.array([1, 5], np.int64)}
    split = of_one("Split", feed, outputs="y z", axis=2)
    rewritten(split, feed)
    feed = {"x": DATA, "k": np.array([4], np.int64)}
    replaced("TopK", feed, outputs="y z")


def test_a_constant_of_a_shape_fills_it() -> None:
    feed = {"s": np.array([2, 3], np.int64)}
    value = numpy_helper.from_array(np.array([7], np.int32))
    assert (
        outputs_of(importable(of_one("ConstantOfShape", feed, value=value)), feed)[0]
        == np.full((2, 3), 7)
    ).all()


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [2, 3, 2, 4, 5]])
def test_a_grid_has_the_extents_of_its_result(size: list[int]) -> None:
    rank = len(size) - 2
    theta = np.random.default_rng(0).standard_normal((2, rank, rank + 1)).astype(np.float32)
    feed = {"t": theta, "s": np.array(size, np.int64)}
    replaced("AffineGrid", feed)


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
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def everything() -> onnx.ModelProto:
    """A quantized convolution with padding, a running sum, a GRU in both directions, statistics of
    a batch mixed with older ones, a mean of whole numbers, numbers rounded to bfloat16, and
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
        **{name: np.arange(1, 5, dtype=np.float32) for name in ("s", "o", "mean", "variance")},
    }
    batch = ["x", "s", "o", "mean", "variance"]
    names = ["q", "scale", "zero", "k", "kscale", "kzero", "scale", "zero"]
    nodes = [
        make_node("QLinearConv", names, ["a"], pads=[1, 1, 1, 1]),
        make_node("DynamicQuantizeLinear", ["x"], ["d", "ds", "dz"]),
        make_node("CumSum", ["x", "axis"], ["b"], reverse=1),
        make_node("GRU", ["w", "gw", "gr"], ["c"], hidden_size=3, direction="bidirectional"),
        make_node("Cast", ["x"], ["whole"], to=TensorProto.INT32),
        make_node("ReduceMean", ["whole"], ["g"], axes=[1]),
        make_node("Cast", ["x"], ["short"], to=TensorProto.BFLOAT16),
        make_node("Cast", ["short"], ["h"], to=TensorProto.FLOAT),
        make_node("BatchNormalization", batch, ["e", "em", "ev"], training_mode=1, momentum=0.7),
        make_node("BatchNormalization", batch, ["f", "fm", "fv"], training_mode=1),
    ]
    return model_of(
        nodes,
        {"q": typed(TensorProto.UINT8, [1, 2, 5, 5]), "x": [3, 4], "w": [5, 1, 4]},
        {
            "a": typed(TensorProto.UINT8, [1, 4, 5, 5]),
            "d": typed(TensorProto.UINT8, [3, 4]),
            "b": [3, 4],
            "c": [5, 2, 1, 3],
            "g": typed(TensorProto.INT32, [3, 1]),
            **{name: [3, 4] for name in ("h", "e", "f")},
            **{name: [4] for name in ("em", "ev", "fm", "fv")},
        },
        weights,
    )


def built(model: Path, feed: dict[str, np.ndarray], place: Path) -> list[np.ndarray]:
    """Returns the model's outputs when it is built with default schedules."""
    assert isinstance(handle_request(build_request(model, place, target=CPU)), Built)
    return list(TvmArtifact(place / "build", ArtifactFile.read(place / "build")).run(feed))


# A model that the compiler cannot build is known by its module.

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


def test_a_model_of_static_shapes_has_no_obstacle(tmp_path: Path) -> None:
    opening = fused_module(conv_model(), tmp_path, TARGET, channels_last=True)
    assert unbuildable(opening, TARGET) == ""


def test_an_output_whose_shape_depends_on_data_is_named(tmp_path: Path) -> None:
    found = typed(TensorProto.INT64, [2, "found"])
    model = model_of([make_node("NonZero", ["x"], ["y"])], {"x": [4, 4]}, {"y": found})
    assert "data" in unbuildable(fused_module(model, tmp_path, TARGET), TARGET)


@pytest.mark.parametrize(("layout", "obstacle"), [("NCHW", ""), ("NHWC", "conv2d_transpose")])
def test_an_operator_without_code_in_its_layout_is_named(layout: str, obstacle: str) -> None:
    found = unbuildable(relax.get_pipeline("zero")(_transposed(layout)), TARGET)
    assert obstacle in found
    assert bool(found) == bool(obstacle)


def _transposed(layout: str) -> Any:
    shape = (1, 4, 8, 8) if layout == "NCHW" else (1, 8, 8, 4)
    image = relax.Var("x", relax.TensorType(shape, "float32"))
    weight = relax.Var("w", relax.TensorType((4, 2, 2, 2), "float32"))
    call = relax.op.nn.conv2d_transpose(image, weight, strides=(2, 2), data_layout=layout)
    return one_call(call, (image, weight))


# What rules know of a graph.


def test_types_are_known_where_all_extents_are() -> None:
    view = GraphView(matmul_model(rows=3))
    assert view.type_of("y") == ((3, 16), TensorProto.FLOAT)
    assert view.type_of("w") == ((16, 16), TensorProto.FLOAT)
    assert view.type_of("nowhere") is None
    assert GraphView(matmul_model(rows="n")).type_of("y") is None


def test_constants_are_initializers_and_constant_nodes() -> None:
    model = of_one("Constant", {}, value_ints=[1, 2])
    constant = GraphView(model).constant("y")
    assert constant is not None
    assert constant.tolist() == [1, 2]
    assert GraphView(matmul_model()).constant("x") is None


# A model is imported in the first layout in which it can be built.


def test_the_second_layout_is_taken_where_the_first_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = imported(conv_model(), tmp_path, TARGET, "nchw")
    monkeypatch.setattr(opening, "unbuildable", _only_first_refused())
    convolution = prepared_model(conv_model(), tmp_path)
    found = import_in_layout(convolution, TARGET, "m.onnx", ("nhwc", "nchw"))
    digests = [[f.workload.digest for f in functions_of(each)] for each in (only, found)]
    assert digests[0] == digests[1]


def test_what_the_first_layout_lacks_is_said_where_none_can_be_built(tmp_path: Path) -> None:
    unknown = prepared_model(one_node_model("Det"), tmp_path)
    with pytest.raises(UnsupportedModelError, match="Det"):
        import_in_layout(unknown, TARGET, "m", ("nhwc", "nchw"))


def _only_first_refused() -> Callable[..., str]:
    answers = iter(["the compiler has no code for it", ""])
    return lambda *_: next(answers)


# A refusal says the operator, its node, and what is missing.

UNSUPPORTED = "is not supported by the compiler"
NODE = make_node("Attention", ["q", "w"], ["y"], name="block/attention")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("w"), "reads w, which the compiler's importer does not know there"),
        (KeyError("num_heads"), "has no num_heads, which the compiler's importer asks for"),
        (AssertionError(), f"{UNSUPPORTED} with these inputs and attributes: q, w"),
        (ValueError("the LHS lv19 has shape R.shape([2, 3])"), f"{UNSUPPORTED} with these inputs"),
        (ValueError("first\n  rank 5 is one too many."), f"{UNSUPPORTED} (rank 5 is one too many)"),
        (
            ValueError('Cannot parse attribute: \nname: "axes"\ntype: INTS\n\n.'),
            f'{UNSUPPORTED} (Cannot parse attribute: name: "axes"',
        ),
        (NotImplementedError("Only const k"), f"{UNSUPPORTED} (Only const k)"),
        (TypeError("'int' object is not iterable"), f"{UNSUPPORTED} with these inputs and"),
        (UnsupportedModelError(), UNSUPPORTED),
        (UnsupportedModelError("its k is an input"), f"{UNSUPPORTED}: its k"),
    ],
)
def test_what_a_converter_raises_becomes_a_sentence(error: Exception, said: str) -> None:
    with pytest.raises(NodeError) as caught, importing(NODE):
        raise error
    assert str(caught.value).startswith(f'operator Attention (node "block/attention") {said}')


def test_an_input_that_has_to_be_constant_is_named() -> None:
    pad = make_node("Pad", ["x", "pads", "fill"], ["y"], name="pad")
    error = NodeError(pad, AttributeError("'Var' object has no attribute 'value'"), {"pads"})
    assert str(error).endswith(
        "not supported by the compiler: it needs fill as a constant of the model"
    )


def test_an_operator_in_a_branch_is_named_instead_of_the_if() -> None:
    inputs = {"c": typed(TensorProto.BOOL, []), "x": [4], "pads": typed(TensorProto.INT64, [2])}
    padding = make_node("Pad", ["x", "pads"], ["y"], name="inner")
    branch = part_of([padding], {}, {"y": ["n"]})
    node = make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    said = r'operator Pad \(node "inner"\) .*it needs pads as a constant of the model$'
    with pytest.raises(NodeError, match=said):
        import_model(model_of([node], inputs, {"y": ["n"]}))


def test_a_declared_length_does_not_hide_that_a_result_depends_on_data() -> None:
    model = one_node_model("NonZero")
    said = fault_of_shapes(model.graph, GraphView(model))
    assert said.startswith('operator NonZero (node "odd") is not supported')


def test_the_length_of_a_split_is_known() -> None:
    nodes = [
        make_node("SplitToSequence", ["x"], ["parts"]),
        make_node("SequenceLength", ["parts"], ["y"]),
    ]
    model = model_of(nodes, {"x": [6]}, {"y": typed(TensorProto.INT64, [])})
    assert int(import_model(model)["main"].body.blocks[-1].bindings[-1].value.value.numpy()) == 6


@pytest.mark.parametrize(("a", "b"), [((2, 3, 4), (4,)), ((4,), (4, 2))])
def test_a_vector_with_a_zero_point_is_multiplied(a: Any, b: Any) -> None:
    feed: dict[str, Any] = {"a": np.ones(a, np.uint8), "b": np.full(b, 3, np.uint8)}
    zero = {"z": np.array([1], np.uint8), "w": np.array([2], np.uint8)}
    model = of_one("MatMulInteger", feed, zero)
    rewritten(model, feed)
    shape = import_model(importable(model))["main"].ret_ty.shape
    assert [int(extent) for extent in shape] == list(np.matmul(np.ones(a), np.ones(b)).shape)


def test_nodes_that_are_out_of_order_are_sorted() -> None:
    model = chain_model(layers=3, width=4)
    nodes = list(model.graph.node)
    sort_nodes(model.graph)
    assert list(model.graph.node) == nodes
    graph = onnx.GraphProto(node=nodes[::-1])
    sort_nodes(graph)
    assert list(graph.node) == nodes


def test_a_body_may_call_its_own_values_as_the_graph_calls_others() -> None:
    """A Scan whose state has the name of the Scan's own output reads itself no more than others."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    body = helper.make_graph([make_node("Add", ["y", "late"], ["x"])], "b", [y], [x])
    scan = make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)
    graph = onnx.GraphProto(node=[scan, make_node("Neg", ["x"], ["late"])])
    sort_nodes(graph)
    assert [node.op_type for node in graph.node] == ["Neg", "Scan"]


def test_one_axis_may_be_a_scalar() -> None:
    feed = {"x": DATA}
    model = of_one("Unsqueeze", feed, {"axis": np.array(1, np.int64)})
    rewritten(model, feed)
    assert import_model(importable(model))


def test_a_place_counted_from_the_end_of_a_sequence_is_refused() -> None:
    nodes = [
        make_node("SequenceConstruct", ["x", "x"], ["two"]),
        make_node("SequenceInsert", ["two", "x", "last"], ["three"]),
        make_node("SequenceAt", ["three", "last"], ["y"]),
    ]
    with pytest.raises(NodeError, match=r"SequenceInsert .*counts its place from the end"):
        importable(model_of(nodes, {"x": [2]}, {"y": [2]}, {"last": np.array(-1)}))


@pytest.mark.parametrize(
    ("corners", "rows", "reason"),
    [(0, 4, "nearest pixel of a reflected image"), (1, 4, ""), (1, 1, "one row or column")],
)
def test_a_reflected_image_is_refused_where_the_compiler_fails(
    corners: int, rows: int, reason: str
) -> None:
    how: dict[str, Any] = {"mode": "nearest", "padding_mode": "reflection"}
    how["align_corners"] = corners
    node = make_node("GridSample", ["x", "grid"], ["y"], **how)
    model = model_of([node], {"x": [1, 2, rows, 5], "grid": [1, 3, 4, 2]}, {"y": [1, 2, 3, 4]})
    with pytest.raises(NodeError, match=rf"GridSample .*{reason}") if reason else nullcontext():
        importable(model)


def test_a_sequence_has_parts_of_its_size_and_the_rest() -> None:
    """TVM makes two of 3 of it."""
    nodes = [
        make_node("SplitToSequence", ["x", "size"], ["parts"]),
        make_node("SequenceAt", ["parts", "first"], ["y"]),
    ]
    constants = {"size": np.array(4), "first": np.array(0)}
    model = importable(model_of(nodes, {"x": [6]}, {"y": [4]}, constants))
    assert [int(each) for each in import_model(model)["main"].ret_ty.shape] == [4]


def test_a_scale_of_zero_is_refused() -> None:
    model = of_one("QuantizeLinear", {"x": np.ones(2, np.float32)}, {"s": np.float32(0)})
    with pytest.raises(NodeError, match=r"QuantizeLinear .*its scale is 0"):
        importable(model)


def test_a_node_without_a_name_is_called_by_what_it_gives() -> None:
    error = NodeError(make_node("TopK", ["x", "k"], ["values", "indices"]), KeyError("k"))
    assert str(error).startswith("operator TopK (the node that makes values) reads k")


def test_a_lack_of_memory_is_no_fault_of_a_node() -> None:
    with pytest.raises(MemoryError), importing(NODE):
        raise MemoryError


def test_a_long_message_is_cut_between_words_and_an_operator_called_by_its_name() -> None:
    told = shorten('ir.Op(span=None, name="relax.nn.conv2d", attrs=1) takes ' + "12345 " * 100)
    assert told.startswith("relax.nn.conv2d takes 12345")
    assert told.endswith("12345 …")
    assert len(told) <= 302
