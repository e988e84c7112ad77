"""Models that ONNX Runtime itself computes with an error that can be seen."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.support.small_onnx import model_of, save
from tunegate.artifacts.inputs import NOTHING_KNOWN, InputRule, KnownInputs
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.builder import Refused, WriteArtifact, WrittenBuild

_WIDTH = 64


def cancelling_model(offset: float) -> onnx.ModelProto:
    """The variance of a product that lies about `offset`, as the difference of two means."""
    weight = np.random.default_rng(0).standard_normal((_WIDTH, _WIDTH)).astype("float32")
    bias = np.full(_WIDTH, offset, "float32")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["h"]),
        helper.make_node("Mul", ["h", "h"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["ms"], axes=[1]),
        helper.make_node("ReduceMean", ["h"], ["m"], axes=[1]),
        helper.make_node("Mul", ["m", "m"], ["sm"]),
        helper.make_node("Sub", ["ms", "sm"], ["y"]),
    ]
    return _model(nodes, [4, _WIDTH], [4, 1], {"w": weight, "b": bias})


def quantized_model() -> onnx.ModelProto:
    """Two layers, static int8: the steps of its output are 2% of the largest one."""
    weight = np.random.default_rng(0).integers(-127, 128, (_WIDTH, _WIDTH)).astype("int8")
    nodes = [
        helper.make_node("DequantizeLinear", ["w8", "ws", "zero"], ["w"]),
        *_rounded("x", "as", "xd"),
        helper.make_node("MatMul", ["xd", "w"], ["h"]),
        *_rounded("h", "ys", "y"),
    ]
    scales = {"ws": np.float32(0.01), "as": np.float32(0.05), "ys": np.float32(0.4)}
    constants = {"w8": weight, "zero": np.int8(0), **scales}
    return _model(nodes, [4, _WIDTH], [4, _WIDTH], constants)


def requantized_model() -> onnx.ModelProto:
    """Two quantizations in a row, of which ONNX Runtime drops the first when it optimizes: it is
    off by one step of the second then, a tenth of the largest output and more."""
    nodes = [*_rounded("x", "s1", "d"), *_rounded("d", "s2", "y")]
    constants = {"s1": np.float32(0.5), "s2": np.float32(0.3), "zero": np.int8(0)}
    return _model(nodes, [4, _WIDTH], [4, _WIDTH], constants)


def _rounded(value: str, scale: str, result: str) -> list[onnx.NodeProto]:
    """A value in steps of this scale, around `zero`."""
    return [
        helper.make_node("QuantizeLinear", [value, scale, "zero"], [f"{result}_steps"]),
        helper.make_node("DequantizeLinear", [f"{result}_steps", scale, "zero"], [result]),
    ]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[int],
    outputs: list[int],
    constants: dict[str, Any],
) -> onnx.ModelProto:
    return model_of(nodes, {"x": inputs}, {"y": outputs}, constants)


def row_norm(kind: str, keepdims: int) -> onnx.ModelProto:
    """A layer norm, or an RMS norm, written with means. Without `keepdims` it is another model,
    which ONNX Runtime optimizes as if it were one."""
    random, size = np.random.default_rng(1), 16
    means: dict[str, Any] = {"axes": [-1], "keepdims": keepdims}
    node = helper.make_node
    nodes, rows = [node("MatMul", ["x", "w"], ["h"])], "h"
    if kind == "layer":
        nodes.append(node("ReduceMean", ["h"], ["m"], **means))
        nodes.append(node("Sub", ["h", "m"], ["d"]))
        rows = "d"
    nodes += [
        node("Pow", [rows, "two"], ["p"]),
        node("ReduceMean", ["p"], ["v"], **means),
        node("Add", ["v", "e"], ["ve"]),
        node("Sqrt", ["ve"], ["sd"]),
        node("Div", [rows, "sd"], ["n"]),
        node("Mul", ["n", "g"], ["ng"]),
        node("Add", ["ng", "b"], ["y"]),
    ]
    values = {"w": random.standard_normal((size, size)) / 4, "two": 2.0, "e": 1e-5}
    values |= {name: random.standard_normal(size) for name in ("g", "b")}
    constants = {name: np.asarray(value, "float32") for name, value in values.items()}
    return _model(nodes, [size, size], [size, size], constants)


def unfusable_model() -> onnx.ModelProto:
    """A model that ONNX Runtime runs as it is written alone: its own optimizations put the padding
    into the pooling, which takes none as wide as its window."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["padded"], name="pad"),
        helper.make_node("MaxPool", ["padded"], ["y"], name="pool", kernel_shape=[2, 2]),
    ]
    constants = {"pads": np.array([0, 0, 3, 3, 0, 0, 3, 3])}
    return _model(nodes, [1, 3, 8, 8], [1, 3, 13, 13], constants)


# Models that the building child is asked to write in int8.

STATIC = {"precision": "int8", "quantization": "static"}
CALIBRATION = tuple(range(100, 132))


def quantized(
    root: Path,
    model: onnx.ModelProto,
    build: tuple[str, str, dict[str, str]],
    samples: tuple[int, ...],
    given: dict[str, InputRule] | None = None,
) -> WrittenBuild | Refused:
    """`build` is the runtime, the variant and its settings. With `given` rules it is calibrated."""
    runtime, variant, settings = build
    return handle_request(
        WriteArtifact(
            runtime=runtime,
            variant=variant,
            settings=settings,
            is_reference=False,
            file=str(save(model, root / "models" / "m.onnx")),
            path="models/m.onnx",
            shapes={},
            threads=1,
            directory=str(root / "artifact"),
            scratch=str(root / "scratch"),
            seeds=(1, 2),
            inputs=NOTHING_KNOWN if given is None else KnownInputs(given=given),
            samples=samples,
            calibration=() if given is None else CALIBRATION,
        )
    )
