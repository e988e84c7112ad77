"""One product or convolution in ONNX Runtime and OpenVINO, to be timed beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kit.dot_products import Case

Peer = tuple[Callable[[], object], Callable[[], Any]]


def onnx_runtime(case: Case, image: Any, weights: Any, kind: str) -> Peer:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _model(case, image, weights, kind), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    binding.bind_cpu_input("x", _image(case, image))
    binding.bind_output("y", "cpu")

    def run() -> None:
        session.run_with_iobinding(binding)

    def out() -> Any:
        run()
        return _rows(case, binding.copy_outputs_to_cpu()[0])

    return run, out


def openvino(case: Case, image: Any, weights: Any, kind: str) -> Peer | None:
    """Returns how to run it and its output; None where OpenVINO is not installed."""
    try:
        from openvino import Core, Tensor  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None
    core = Core()
    precision = {"float32": "f32", "bfloat16": "bf16"}[kind]
    compiled = core.compile_model(
        core.read_model(_model(case, image, weights, "float32")),
        "CPU",
        {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1},
    )
    request = compiled.create_infer_request()
    request.set_input_tensor(Tensor(_image(case, image)))

    def out() -> Any:
        request.infer()
        return _rows(case, np.array(request.get_output_tensor().data))

    return request.infer, out


def _image(case: Case, image: Any) -> Any:
    if case.width == 1:
        return image
    whole = image.reshape(case.height, case.width, -1).transpose(2, 0, 1)
    return np.ascontiguousarray(whole[None])


def _rows(case: Case, out: Any) -> Any:
    return out if case.width == 1 else out[0].transpose(1, 2, 0).reshape(-1, case.out)


def _model(case: Case, image: Any, weights: Any, kind: str) -> Any:
    settings: Any
    if case.width == 1:
        kernel, operator, settings = weights[0], "MatMul", {}
    else:
        square = weights.reshape(case.taps, case.taps, case.depth, case.out)
        kernel, operator = np.ascontiguousarray(square.transpose(3, 2, 0, 1)), "Conv"
        settings = {"pads": [case.taps // 2] * 4}
    if kind == "float32":
        nodes = [helper.make_node(operator, ["x", "w"], ["y"], **settings)]
        constants = {"w": kernel}
    else:
        nodes, constants = _quantized(case, image, kernel, operator, settings)
    graph = helper.make_graph(
        nodes,
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, _image(case, image).shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def _quantized(
    case: Case, image: Any, kernel: Any, operator: str, settings: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the nodes and constants between QuantizeLinear and DequantizeLinear."""
    scale, reach = np.abs(kernel).max() / 127, 6 * case.taps * 0.58
    constants = {
        "w8": np.round(kernel / scale).astype("int8"),
        "sw": np.float32(scale),
        "sx": np.float32(1 / 255),
        "sy": np.float32(reach / 127),
        "zx": np.uint8(0),
        "zy": np.uint8(128),
        "zw": np.int8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["x8"]),
        helper.make_node("DequantizeLinear", ["x8", "sx", "zx"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w8", "sw", "zw"], ["wf"]),
        helper.make_node(operator, ["xf", "wf"], ["f"], **settings),
        helper.make_node("QuantizeLinear", ["f", "sy", "zy"], ["y8"]),
        helper.make_node("DequantizeLinear", ["y8", "sy", "zy"], ["y"]),
    ]
    return nodes, {name: np.asarray(value) for name, value in constants.items()}
