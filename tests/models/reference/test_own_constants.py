"""Quantized models whose nodes share int8 constants. On a CPU with VNNI ONNX Runtime does not
rewrite them, so there the last resort alone is tried by hand."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.models.reference.test_comparison import artifact_of, compared
from tests.support.models.inexact import cancelling_model
from tests.support.small_onnx import model_of, part_of, save, typed
from tunegate.artifacts.builds import NumericCheck
from tunegate.models.reference.comparison import Reference
from tunegate.models.reference.onnx_runtime import onnxruntime, open_session, timed_options
from tunegate.models.reference.own_constants import with_own_constants, with_unsigned_operands
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession
from tunegate.runtimes.onnxruntime.runtime import RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

RANDOM = np.random.default_rng(0)
FEED = {"x": RANDOM.standard_normal((8, 64)).astype("float32")}
PRODUCT_WEIGHTS = {name: RANDOM.integers(-128, 128, (64, 64)).astype("int8") for name in ("w", "v")}
_CPU = ["CPUExecutionProvider"]


def layers(zero_points: Sequence[str], weights: Sequence[str]) -> onnx.ModelProto:
    """Layers in int8 as exporters write them, with these names of zero points and weights."""
    nodes, value = [], "x"
    for at, (zero, weight) in enumerate(zip(zero_points, weights, strict=True)):
        quantized = [f"q{at}", f"d{at}", f"w{at}", f"y{at}"]
        nodes += [
            helper.make_node("QuantizeLinear", [value, "s", "z"], quantized[:1]),
            helper.make_node("DequantizeLinear", [quantized[0], "s", "z"], quantized[1:2]),
            helper.make_node("DequantizeLinear", [weight, "sw", zero], quantized[2:3]),
            helper.make_node("MatMul", quantized[1:3], quantized[3:]),
        ]
        value = quantized[3]
    nodes += [
        helper.make_node("QuantizeLinear", [value, "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    random = np.random.default_rng(1)
    constants = {
        "s": np.float32(0.2),
        "z": np.uint8(100),
        "sw": np.float32(0.01),
        **{name: np.int8(0) for name in zero_points},
        **{name: random.integers(-128, 128, (64, 64)).astype("int8") for name in weights},
    }
    return of_products(nodes, constants)


def products(weights: Sequence[str]) -> onnx.ModelProto:
    """Sums of int8 products that share a zero point and maybe a weight."""
    nodes, added = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])], []
    for at, weight in enumerate(weights):
        nodes.append(helper.make_node("MatMulInteger", ["q", weight, "z", "zw"], [f"m{at}"]))
        added.append(f"m{at}")
    nodes.append(helper.make_node("Add", added, ["sum"]))
    nodes.append(helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT))
    return of_products(nodes, {"zw": np.int8(0), **PRODUCT_WEIGHTS})


def exact_sum(weights: Sequence[str]) -> Any:
    """Returns the right output of `products`: integers, small enough for a float64."""
    step = (FEED["x"].max() - FEED["x"].min()) / np.float32(255)
    zero = np.rint(-FEED["x"].min() / step)
    rows = np.clip(np.rint(FEED["x"] / step) + zero, 0, 255) - zero
    return np.sum([rows.astype("float64") @ PRODUCT_WEIGHTS[name] for name in weights], axis=0)


def of_products(nodes: list[onnx.NodeProto], constants: Mapping[str, Any]) -> onnx.ModelProto:
    return model_of(nodes, {"x": [8, 64]}, {"y": [8, 64]}, constants)


LAYERS = {
    "a zero point of two weights": layers(["zw", "zw"], ["w", "v"]),
    "a zero point of three weights": layers(["zw", "zw", "zw"], ["w", "v", "u"]),
    "a weight of two layers": layers(["zw", "zx"], ["w", "w"]),
    "weight and zero point": layers(["zw", "zw"], ["w", "w"]),
}
PRODUCTS = {"of two weights": ["w", "v"], "of one weight": ["w", "w"]}
SHARING = LAYERS | {name: products(each) for name, each in PRODUCTS.items()}


@pytest.mark.parametrize("model", LAYERS.values(), ids=LAYERS.keys())
def test_layers_that_share_int8_constants_compute_what_is_written(
    model: onnx.ModelProto, tmp_path: Path
) -> None:
    file = save(model, tmp_path / "m.onnx")
    (expected,) = ReferenceSession(file, level=NO_OPTIMIZATION).run(FEED)
    found = shipped(tmp_path)
    assert np.abs(found - expected).mean() < 0.1, "a step is 0.2, and few elements are one off"


@pytest.mark.parametrize("weights", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products_that_share_int8_constants_are_exact(weights: list[str], tmp_path: Path) -> None:
    save(products(weights), tmp_path / "m.onnx")
    np.testing.assert_array_equal(shipped(tmp_path), exact_sum(weights))


def shipped(directory: Path) -> Any:
    artifact = ArtifactFile(runtime="onnxruntime", file="m.onnx", inputs=(), outputs=(), threads=1)
    (found,) = RUNTIME.load(directory, artifact).run(FEED)
    return found


@pytest.mark.parametrize("model", SHARING.values(), ids=SHARING.keys())
def test_after_that_no_int8_constant_has_two_readers(model: onnx.ModelProto) -> None:
    changed = onnx.ModelProto.FromString(with_own_constants(model.SerializeToString()))
    int8 = {each.name for each in changed.graph.initializer if each.data_type == TensorProto.INT8}
    read = [name for node in changed.graph.node for name in node.input if name in int8]
    assert len(read) == len(set(read))
    (ours,), (theirs,) = (
        ReferenceSession(each.SerializeToString(), level=NO_OPTIMIZATION).run(FEED)
        for each in (changed, model)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_data_beside_the_model_are_found_where_they_are(tmp_path: Path) -> None:
    model = layers(["zw", "zw"], ["w", "v"])
    file = tmp_path / "m.onnx"
    onnx.save(model, file, save_as_external_data=True, location="w.bin", size_threshold=64)
    expected = ReferenceSession(save(model, tmp_path / "whole.onnx")).run(FEED)
    np.testing.assert_array_equal(ReferenceSession(file).run(FEED), expected)


class Refusing:
    """An ONNX Runtime that fails as it does without VNNI, as often as told, then loads."""

    def __init__(self, times: int) -> None:
        self._left, self._open = times, onnxruntime.InferenceSession

    def __call__(self, *given: Any, **more: Any) -> Any:
        self._left -= 1
        if self._left >= 0:
            message = "AddInitializedOrtValue Attempt to replace the existing tensor"
            raise RuntimeError(message)
        return self._open(*given, **more)


@pytest.mark.parametrize(("times", "note"), [(1, "a copy for each weight"), (2, "run without")])
def test_how_it_was_opened_is_said(
    times: int, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = save(SHARING["a zero point of two weights"], tmp_path / "m.onnx")
    monkeypatch.setattr(onnxruntime, "InferenceSession", Refusing(times))
    found = open_session(file, timed_options(1), _CPU)
    assert note in found.note
    assert found.session.run(None, FEED)[0].shape == (8, 64)


def test_where_nothing_is_shared_the_error_is_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = layers(["z1", "z2"], ["w", "v"])
    assert open_session(model.SerializeToString(), timed_options(1), _CPU).note == ""
    monkeypatch.setattr(onnxruntime, "InferenceSession", Refusing(1))
    with pytest.raises(RuntimeError, match="Attempt to replace"):
        open_session(save(model, tmp_path / "m.onnx"), timed_options(1), _CPU)


# What ONNX Runtime itself does not know of a model's numbers is measured.


def noise_of(model: onnx.ModelProto, directory: Path, shape: tuple[int, ...]) -> list[float]:
    file = save(model, directory / "m.onnx")
    return Reference(file, [ArtifactTensor("x", shape, "float32")], (1,)).noise


def test_a_difference_of_nearly_equal_sums_shows_how_they_are_rounded(tmp_path: Path) -> None:
    (exact,) = noise_of(cancelling_model(0.0), tmp_path, (4, 64))
    (noise,) = noise_of(cancelling_model(3000.0), tmp_path, (4, 64))
    assert exact < 1e-5
    assert noise > 1e-3


# Without optimizations: products of int8 with uint8, near the ends of both ranges.

KINDS = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
OF_INTEGERS = [
    (operator, *kinds, has_zeros)
    for operator in ("MatMulInteger", "ConvInteger")
    for kinds in itertools.product(KINDS, KINDS)
    for has_zeros in (True, False)
]
SCALED = [
    (operator, *kinds, True)  # zero points must be there, and it has no kernel of int8 with uint8
    for operator in ("QLinearMatMul", "QLinearConv")
    for kinds in itertools.product(KINDS, KINDS)
    if kinds != ("int8", "uint8")
]


@pytest.mark.parametrize(("operator", "data", "weight", "has_zeros"), [*OF_INTEGERS, *SCALED])
def test_what_is_written_is_exact_without_vnni(
    operator: str, data: str, weight: str, has_zeros: bool
) -> None:
    is_scaled = operator.startswith("QLinear")
    is_matrix = operator.endswith(("MatMul", "MatMulInteger"))
    shapes = ((4, 64), (64, 16)) if is_matrix else ((1, 8, 3, 3), (16, 8, 3, 3))
    x, w = (near_the_end(*each) for each in zip((data, weight), shapes, strict=True))
    zeros = {"zx": np.array(3, data), "zw": np.array(5, weight)} if has_zeros else {}
    wide, narrow = (
        each.astype("int64") - (zeros[name] if has_zeros else 0)
        for each, name in ((x, "zx"), (w, "zw"))
    )
    sums = wide @ narrow if is_matrix else np.einsum("nchw,ochw->no", wide, narrow)[..., None, None]
    step = np.float32(np.abs(sums).max() / 100)
    given = [*zeros]
    inputs = ["x", "w", *given]
    constants: dict[str, Any] = {"w": w, **zeros}
    if is_scaled:
        constants |= {"one": np.float32(1), "sy": step, "zy": np.array(0, data)}
        inputs = ["x", "one", "zx", "w", "one", "zw", "sy", "zy"]
        limits = np.iinfo(data)
        sums = np.clip(np.rint(sums / step), limits.min, limits.max)
    made = KINDS[data] if is_scaled else TensorProto.INT32
    model = model_of(
        [helper.make_node(operator, inputs, ["y"])],
        {"x": typed(KINDS[data], x.shape)},
        {"y": typed(made, sums.shape)},
        constants,
    ).SerializeToString()
    session = ReferenceSession(model, level=NO_OPTIMIZATION)
    assert session.is_exact
    np.testing.assert_array_equal(session.run({"x": x})[0], sums)


def near_the_end(dtype: str, shape: tuple[int, ...]) -> Any:
    most = np.iinfo(dtype).max
    return np.random.default_rng(1).integers(most - 40, most + 1, shape).astype(dtype)


def test_a_product_inside_of_a_branch_is_exact_too(tmp_path: Path) -> None:
    """Its weights come from outside of it."""
    product = helper.make_node("MatMulInteger", ["x", "w"], ["z"])
    inner = part_of([product], {}, {"z": typed(TensorProto.INT32, None)})
    w = near_the_end("int8", (64, 16))
    model = model_of(
        [helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)],
        {"x": typed(TensorProto.UINT8, [4, 64])},
        {"y": typed(TensorProto.INT32, [4, 16])},
        {"c": np.array(True), "w": w},
    )
    x = near_the_end("uint8", (4, 64))
    (found,) = ReferenceSession(save(model, tmp_path / "m"), level=NO_OPTIMIZATION).run({"x": x})
    np.testing.assert_array_equal(found, x.astype("int64") @ w)


def test_operators_of_onnx_runtime_alone_are_left_to_it() -> None:
    model = products(["w"])
    model.graph.node[1].op_type = "MatMulIntegerToFloat"
    assert with_unsigned_operands(model.SerializeToString()) is None


# Rows that sort what ties.


ANCHORS, PICKED, WIDTH = 400, 50, 16
Outputs = list[Any]


def detector(*, moved: float = 0.0, spread: float = 3e-6) -> onnx.ModelProto:
    """A detector that detects nothing: its scores lie within some roundings of each other."""
    random = np.random.default_rng(0)
    scores = random.standard_normal((WIDTH, ANCHORS)) * spread
    bias = 1 + moved * np.random.default_rng(7).choice([-1, 1], ANCHORS)
    weights = {
        "ws": scores.astype(np.float32),
        "wb": random.standard_normal((WIDTH, ANCHORS * 4)).astype(np.float32),
        "bias": bias.astype(np.float32),
    }
    constants = {
        "k": np.array([PICKED]),
        "boxes_shape": np.array([1, ANCHORS, 4]),
        "last": np.array([2]),
        "four": np.array([1, 1, 4]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "ws"], ["s"]),
        helper.make_node("Add", ["s", "bias"], ["scores"]),
        helper.make_node("MatMul", ["x", "wb"], ["flat"]),
        helper.make_node("Reshape", ["flat", "boxes_shape"], ["boxes"]),
        helper.make_node("TopK", ["scores", "k"], ["best", "places"], axis=1),
        helper.make_node("Unsqueeze", ["places", "last"], ["index"]),
        helper.make_node("Tile", ["index", "four"], ["indices"]),
        helper.make_node("GatherElements", ["boxes", "indices"], ["picked"], axis=1),
    ]
    return model_of(
        nodes,
        {"x": [1, WIDTH]},
        {
            "picked": [1, PICKED, 4],
            "best": [1, PICKED],
            "places": typed(TensorProto.INT64, [1, PICKED]),
        },
        {**weights, **constants},
    )


def check_of(change: Callable[[Outputs], Outputs], tmp_path: Path, **other: float) -> NumericCheck:
    """The check of a build with weights a rounding away, whose outputs are changed."""
    file = save(detector(), tmp_path / "m.onnx")
    build = onnxruntime.InferenceSession(detector(**other).SerializeToString())
    artifact = artifact_of(
        ArtifactTensor("x", (1, WIDTH), "float32"),
        ArtifactTensor("picked", (1, PICKED, 4), "float32"),
        ArtifactTensor("best", (1, PICKED), "float32"),
        ArtifactTensor("places", (1, PICKED), "int64"),
    )
    told = compared(lambda feed: change(build.run(None, dict(feed))), file, artifact, (1, 2))
    assert isinstance(told, NumericCheck)
    return told


def as_it_is(outputs: Outputs) -> Outputs:
    return outputs


def test_equal_detections_in_another_order_are_equal(tmp_path: Path) -> None:
    def shuffled(outputs: Outputs) -> Outputs:
        order = np.random.default_rng(3).permutation(PICKED)
        return [each[:, order] for each in outputs]

    check = check_of(shuffled, tmp_path)
    assert (check.passed, check.max_relative) == (True, 0.0)


def test_rows_at_the_end_that_come_and_go_by_rounding_are_allowed(tmp_path: Path) -> None:
    assert check_of(as_it_is, tmp_path, moved=2**-20).passed


def boxes_off(outputs: Outputs) -> Outputs:
    return [outputs[0] * np.float32(1.01), *outputs[1:]]


def boxes_of_others(outputs: Outputs) -> Outputs:
    """Each box is right, and has the score and the place of another."""
    return [np.roll(outputs[0], 1, axis=1), *outputs[1:]]


def one_again_and_again(outputs: Outputs) -> Outputs:
    return [np.repeat(each[:, :1], PICKED, axis=1) for each in outputs]


def one_is_wrong(outputs: Outputs) -> Outputs:
    outputs[0][0, 0] += 1
    return outputs


def some_are_wrong(outputs: Outputs) -> Outputs:
    """More than come and go by rounding."""
    outputs[0][0, ::3] += 1
    return outputs


@pytest.mark.parametrize(
    "wrong", [boxes_off, boxes_of_others, one_again_and_again, one_is_wrong, some_are_wrong]
)
def test_other_detections_are_refused(wrong: Callable[[Outputs], Outputs], tmp_path: Path) -> None:
    check = check_of(wrong, tmp_path)
    assert not check.passed
    assert check.detail.startswith("output ")
