"""Models that ONNX Runtime itself computes with an error that can be seen."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

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
    constants = {
        "w8": weight,
        "ws": np.array(0.01, "float32"),
        "wz": np.array(0, "int8"),
        "as": np.array(0.05, "float32"),
        "az": np.array(0, "int8"),
        "ys": np.array(0.4, "float32"),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w8", "ws", "wz"], ["w"]),
        helper.make_node("QuantizeLinear", ["x", "as", "az"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "as", "az"], ["xd"]),
        helper.make_node("MatMul", ["xd", "w"], ["h"]),
        helper.make_node("QuantizeLinear", ["h", "ys", "az"], ["hq"]),
        helper.make_node("DequantizeLinear", ["hq", "ys", "az"], ["y"]),
    ]
    return _model(nodes, [4, _WIDTH], [4, _WIDTH], constants)


def requantized_model() -> onnx.ModelProto:
    """Two quantizations in a row, of which ONNX Runtime drops the first when it optimizes: it is
    off by one step of the second then, a tenth of the largest output and more."""
    constants = {
        "s1": np.array(0.5, "float32"),
        "s2": np.array(0.3, "float32"),
        "z": np.array(0, "int8"),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s1", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s1", "z"], ["d"]),
        helper.make_node("QuantizeLinear", ["d", "s2", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s2", "z"], ["y"]),
    ]
    return _model(nodes, [4, _WIDTH], [4, _WIDTH], constants)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[int],
    outputs: list[int],
    constants: dict[str, np.ndarray],
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
    weights = [numpy_helper.from_array(np.asarray(v, "float32"), n) for n, v in values.items()]
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [size, size]) for name in "xy"
    )
    graph = helper.make_graph(nodes, "g", [given], [made], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def unfusable_model() -> onnx.ModelProto:
    """A model that ONNX Runtime runs as it is written alone: its own optimizations put the padding
    into the pooling, which takes none as wide as its window."""
    pads = numpy_helper.from_array(np.array([0, 0, 3, 3, 0, 0, 3, 3]), "pads")
    return model_of(
        [
            helper.make_node("Pad", ["x", "pads"], ["padded"], name="pad"),
            helper.make_node("MaxPool", ["padded"], ["y"], name="pool", kernel_shape=[2, 2]),
        ],
        {"x": [1, 3, 8, 8]},
        {"y": [1, 3, 13, 13]},
        [pads],
    )


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
