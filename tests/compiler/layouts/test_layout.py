"""Channels last inside a model changes nothing but its speed."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import helper
from tvm import relax
from tvm.relax import op

from tests.compiler.importing.fused_module import imported, one_call
from tests.support.present import present
from tests.support.small_onnx import model_of, save
from tunegate.artifacts.builds import Build
from tunegate.compiler.importing.import_onnx import import_model
from tunegate.compiler.layouts.layout import (
    channels_last,
    layouts,
    with_turned_convolutions,
    without_inverse_transposes,
)
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

WEIGHTS = {
    "plain": (8, 3, 3, 3),
    "strided": (16, 8, 3, 3),
    "depthwise": (16, 1, 3, 3),
    "grouped": (16, 4, 3, 3),
    "up": (16, 8, 2, 2),
    "one": (8, 24, 1, 1),
    "up_last": (8, 2, 2, 2),
    "dense": (8 * 12 * 12, 5),
}
NODES = [
    helper.make_node("Conv", ["x", "plain"], ["a"], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("Conv", ["b", "strided"], ["c"], strides=[2, 2], pads=[0, 0, 1, 1]),
    helper.make_node("Conv", ["c", "depthwise"], ["d"], group=16, pads=[1, 1, 1, 1]),
    helper.make_node("Clip", ["d", "zero", "six"], ["o"]),
    helper.make_node("Conv", ["o", "grouped"], ["e"], group=4, pads=[1, 1, 1, 1]),
    helper.make_node("ConvTranspose", ["e", "up"], ["f"], strides=[2, 2]),
    helper.make_node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Concat", ["g", "e"], ["h"], axis=1),
    helper.make_node("Conv", ["h", "one"], ["i"]),
    helper.make_node("MaxPool", ["a"], ["j"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Add", ["i", "j"], ["k"]),
    helper.make_node("ConvTranspose", ["k", "up_last"], ["n"], strides=[2, 2]),
    helper.make_node("Flatten", ["k"], ["l"]),
    helper.make_node("MatMul", ["l", "dense"], ["m"]),
]


def all_kinds_of_convolutions() -> onnx.ModelProto:
    """Plain, strided with uneven padding, depthwise, grouped, transposed; joined and flattened."""
    random = np.random.default_rng(1)
    tensors: dict[str, Any] = {
        name: random.normal(0, 0.2, shape).astype("float32") for name, shape in WEIGHTS.items()
    }
    tensors |= {"zero": np.float32(0), "six": np.float32(6)}
    outputs = {"m": (1, 5), "k": (1, 8, 12, 12), "n": (1, 2, 24, 24)}
    return model_of(NODES, {"x": (1, 3, 24, 24)}, outputs, tensors)


def built(directory: Path, model: onnx.ModelProto, layout: str) -> Build:
    file = save(model, directory / "m.onnx")
    target = TargetConfig(name="cpu", threads=1, layout=layout)  # type: ignore[arg-type]
    job = ModelJob(file=file, path="m.onnx", shapes={}, target=target)
    wanted = BuildJob(model=job, records={}, sources={}, directory=directory / "b")
    with closing(MetaScheduleCompiler(directory / "c", seed=1)) as compiler:
        (build,) = compiler.build([wanted])
    return build


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_every_kind_of_convolution_computes_what_it_did(tmp_path: Path, layout: str) -> None:
    build = built(tmp_path, all_kinds_of_convolutions(), layout)
    assert build.error is None
    assert present(build.check).passed
    assert {"a", "c", "i"} <= {task.name for task in build.tasks}


@pytest.mark.parametrize(
    ("weights", "attributes", "is_product"),
    [
        ((3, 5, 2, 3), {"strides": [2, 3]}, True),
        ((3, 1, 2, 2), {"strides": [2, 2]}, True),
        ((3, 5, 3, 3), {"strides": [2, 2]}, False),
        ((3, 5, 2, 2), {"strides": [2, 2], "pads": [1, 1, 0, 0]}, False),
        ((3, 5, 2, 2), {"strides": [2, 2], "output_padding": [1, 0]}, False),
        ((3, 5, 1, 1), {"strides": [1, 1], "group": 3}, False),
        ((4, 3, 4), {"pads": [1, 2]}, None),
        ((6, 1, 3), {"group": 3, "strides": [2], "dilations": [2]}, None),
    ],
)
def test_convolutions_of_every_form_compute_what_they_did(
    weights: tuple[int, ...], attributes: dict[str, Any], is_product: bool | None
) -> None:
    """`is_product` is None for a convolution of one dimension."""
    random = np.random.default_rng(1)
    pixels = (3, 9) if is_product is not None else (14,)
    x, w = (random.standard_normal(s).astype("float32") for s in ((2, 3, *pixels), weights))
    kind = "Conv" if is_product is None else "ConvTranspose"
    node = helper.make_node(kind, ["x", "w"], ["y"], **attributes)
    model = model_of([node], {"x": x.shape}, {"y": None}, {"w": w})
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    changed = channels_last(import_model(model))
    assert ("conv2d_transpose" in str(changed)) == (is_product is False)
    assert ("NWC" in str(changed)) == (is_product is None)
    machine = relax.VirtualMachine(tvm.compile(changed, "llvm"), tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_one_dimension_is_last_around_a_transposed_convolution_and_an_empty_constant(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(1)
    shapes = {"w": (8, 4, 3), "none": (1, 0, 12), "up": (8, 4, 2)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Concat", ["a", "none"], ["b"], axis=1),
        helper.make_node("ConvTranspose", ["b", "up"], ["y"], strides=[2]),
    ]
    weights = {
        name: random.standard_normal(each).astype("float32") for name, each in shapes.items()
    }
    model = model_of(nodes, {"x": [1, 4, 14]}, {"y": [1, 4, 24]}, weights)
    build = built(tmp_path, model, "nhwc")
    assert build.error is None
    assert present(build.check).passed


def test_between_convolutions_no_image_is_turned(tmp_path: Path) -> None:
    """A block as MobileNetV3 has it: a window for each channel, and an activation with bounds."""
    names = {"zero": 0.0, "six": 6.0, "three": 3.0}
    nodes = [
        helper.make_node("Conv", ["x", "plain"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "window"], ["b"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["b", "three"], ["c"]),
        helper.make_node("Clip", ["c", "zero", "six"], ["d"]),
        helper.make_node("Mul", ["b", "d"], ["e"]),
        helper.make_node("Conv", ["e", "last"], ["y"]),
    ]
    weights = {"plain": (8, 3, 3, 3), "window": (8, 1, 3, 3), "last": (4, 8, 1, 1)}
    tensors = {name: np.ones(shape, "float32") for name, shape in weights.items()}
    tensors |= {name: np.array(value, "float32") for name, value in names.items()}
    model = model_of(nodes, {"x": [1, 3, 24, 24]}, {"y": [1, 4, 24, 24]}, tensors)
    module = imported(model, tmp_path, tvm_target(TargetConfig(name="cpu", threads=1)).target)
    turned = [name for name in map(str, module.get_global_vars()) if "transpose" in name]
    assert len(turned) <= 2, turned  # the model's own input and output
    assert len(module.functions) <= 6, list(module.functions)  # three convolutions, with all else


def test_a_model_with_an_operator_that_cannot_be_turned_stays_as_it_is(tmp_path: Path) -> None:
    """ONNX's Max becomes a maximum over a fifth dimension."""
    model = all_kinds_of_convolutions()
    (add,) = [node for node in model.graph.node if node.op_type == "Add"]
    add.op_type = "Max"
    build = built(tmp_path, model, "auto")
    assert build.error is None
    assert present(build.check).passed


def test_channels_are_last_on_a_cpu_where_that_builds() -> None:
    assert layouts(TargetConfig(name="a")) == ("nhwc", "nchw")
    assert layouts(TargetConfig(name="a", kind="cuda")) == ("nchw",)


def test_a_layout_that_is_asked_for_is_the_only_one() -> None:
    assert layouts(TargetConfig(name="a", layout="nhwc", kind="cuda")) == ("nhwc",)
    assert layouts(TargetConfig(name="a", layout="nchw")) == ("nchw",)


def test_scalars_of_a_model_without_convolutions_are_not_turned() -> None:
    mean = helper.make_node("Mean", ["x", "x"], ["y"])
    module = import_model(model_of([mean], {"x": []}, {"y": []}))
    assert "main" in {variable.name_hint for variable in channels_last(module).get_global_vars()}


SHAPE = (1, 3, 4, 5)
LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
OF_A_CHANNEL = relax.const(np.arange(3, dtype="float32").reshape(1, 1, 1, 3))
OF_A_CHANNEL_TOO = relax.const(np.arange(3, dtype="float32"))
HALF = relax.const(np.full((1,), 0.5, "float32"))
STEPS = relax.const(np.array([0.1, 0.2, 0.3], "float32"))
ZEROS = relax.const(np.array([0, 5, -9], "int8"))


Body = Callable[[Any], Any]


def made(body: Body) -> Any:
    """A function of an image with its channels first."""
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    return relax.transform.Normalize()(one_call(body(x), (x,)))


def transposes(module: Any) -> int:
    return str(module).count("R.permute_dims(")


def output_of(module: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    x = np.random.default_rng(1).standard_normal(shape).astype("float32")
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return machine["main"](tvm.runtime.tensor(x)).numpy()


def between(middle: Body) -> Body:
    return lambda x: op.permute_dims(middle(op.permute_dims(x, LAST)), FIRST)


@pytest.mark.parametrize(
    "middle",
    [
        lambda x: op.clip(x, 0, 6),
        lambda x: op.multiply(HALF, x),
        lambda x: op.minimum(op.maximum(x, relax.const(0.0)), relax.const(0.5)),
        lambda x: op.multiply(x, op.add(x, HALF)),
        lambda x: op.sigmoid(op.add(x, OF_A_CHANNEL)),
        lambda x: op.nn.relu(op.subtract(OF_A_CHANNEL_TOO, x)),
        lambda x: op.dequantize(op.quantize(x, STEPS, ZEROS, 3, "int8"), STEPS, ZEROS, -1),
    ],
)
def test_two_that_undo_each_other_go_and_the_numbers_stay(middle: Body) -> None:
    module = made(between(middle))
    changed = without_inverse_transposes(module)
    assert (transposes(module), transposes(changed)) == (2, 0)
    np.testing.assert_array_equal(output_of(changed), output_of(module))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: op.clip(op.permute_dims(x, LAST), 0, 6),
        between(lambda x: op.nn.softmax(x, axis=-1)),
        between(lambda x: op.add(x, op.sum(x, axis=[3], keepdims=True))),
        lambda x: op.permute_dims(op.clip(op.permute_dims(x, LAST), 0, 6), LAST),
    ],
    ids=["never undone", "along an axis", "a sum of channels", "another one"],
)
def test_what_does_not_become_less_stays_as_it_is(body: Body) -> None:
    module = made(body)
    assert without_inverse_transposes(module) is module


def test_who_else_reads_a_transposed_value_still_does() -> None:
    def body(x: Any) -> Any:
        last = op.permute_dims(x, LAST)
        clipped = op.permute_dims(op.clip(last, 0, 6), FIRST)
        return op.add(op.reshape(clipped, (60,)), op.reshape(last, (60,)))

    module = made(body)
    changed = without_inverse_transposes(module)
    assert transposes(changed) == 1
    np.testing.assert_array_equal(output_of(changed), output_of(module))


# Convolutions whose layout is changed one by one, where the compiler cannot do it for all.

TURNED_CONVOLUTIONS_SHAPE = (1, 4, 9, 1)
turned_output = partial(output_of, shape=TURNED_CONVOLUTIONS_SHAPE)
TURNED_CONVOLUTIONS_WEIGHTS = {
    "wide": (8, 4, 3, 1),
    "grouped": (8, 4, 3, 1),
    "of-a-channel": (1, 8, 1, 1),
}
TURNED_CONVOLUTIONS_NODES = [
    helper.make_node("Conv", ["x", "wide"], ["a"], pads=[2, 0, 1, 0], strides=[1, 1]),
    helper.make_node("Add", ["a", "of-a-channel"], ["b"]),
    helper.make_node("Relu", ["b"], ["c"]),
    helper.make_node("Conv", ["c", "grouped"], ["d"], group=2, dilations=[2, 1]),
    helper.make_node("Squeeze", ["d", "last"], ["y"]),
]


def a_text_s_convolutions() -> onnx.ModelProto:
    """Two convolutions along one axis; the other axis is gone in the end."""
    random = np.random.default_rng(1)
    tensors: dict[str, Any] = {
        name: random.normal(0, 0.2, shape).astype("float32")
        for name, shape in TURNED_CONVOLUTIONS_WEIGHTS.items()
    }
    tensors["last"] = np.array([3])
    return model_of(
        TURNED_CONVOLUTIONS_NODES, {"x": TURNED_CONVOLUTIONS_SHAPE}, {"y": [1, 8, 6]}, tensors
    )


def test_convolutions_compute_what_they_did() -> None:
    module = import_model(a_text_s_convolutions())
    turned = with_turned_convolutions(module)
    assert str(turned).count('data_layout="NHWC"') == 2
    assert with_turned_convolutions(turned)["main"].script() == turned["main"].script()
    np.testing.assert_allclose(turned_output(turned), turned_output(module), rtol=1e-5)


def test_a_model_whose_layouts_the_compiler_cannot_change_has_its_channels_last_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TVM's change of layouts does so where tensors are stacked."""

    def fail(*_: Any) -> Any:
        raise tvm.error.InternalError("Index -1 out of bounds 3")

    module = import_model(a_text_s_convolutions())
    monkeypatch.setattr(relax.transform, "ConvertLayout", lambda *_: fail)
    turned = channels_last(module)
    text = str(turned)
    assert text.count('data_layout="NHWC"') == 2
    assert text.count("axes=[0, 3, 1, 2]") == 1, "the image is turned back once"
    np.testing.assert_allclose(turned_output(turned), turned_output(module), rtol=1e-5)
