"""Times the devices of one execution provider, in the environment of its package."""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BLOCKS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="the package's Python module")
    parser.add_argument("repeats", type=int, help="inferences of a block")
    arguments = parser.parse_args()
    repeats = arguments.repeats
    register(arguments.module)
    version = onnxruntime.__version__
    opened = list(openers())
    if not opened:
        print(json.dumps([version, "none listed", *[""] * 6]))
    for device, session_options in opened:
        for name, body, feed in models():
            row = [version, device, name]
            try:
                row += measured(body, feed, session_options, repeats)
            except Exception as error:  # noqa: BLE001 - whatever a provider raises
                row += ["", "fails", "", "", str(error).splitlines()[0][:100].replace("|", " ")]
            print(json.dumps(row), flush=True)


def register(module: str) -> None:
    """A package with a library of its own says where it is; a whole ONNX Runtime has it built
    in."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return
    path = getattr(found, "get_library_path", None) or getattr(found, "library_path", None)
    if path is not None:
        onnxruntime.register_execution_provider_library(module, path())


def openers() -> Iterator[tuple[str, Callable[[onnxruntime.SessionOptions], None]]]:
    """Yields each device of a provider beside ONNX Runtime's own, and what adds it to a session."""
    for device in onnxruntime.get_ep_devices():
        if device.ep_name not in {"CPUExecutionProvider", "AzureExecutionProvider"}:
            kind = str(device.device.type).rpartition(".")[2]
            yield f"{device.ep_name} {kind}", partial(_add_device, device)
    if "OpenVINOExecutionProvider" in onnxruntime.get_available_providers():
        yield "OpenVINOExecutionProvider built in", _add_openvino


def _add_device(
    device: onnxruntime.OrtEpDevice, session_options: onnxruntime.SessionOptions
) -> None:
    session_options.add_provider_for_devices([device], {})


def _add_openvino(session_options: onnxruntime.SessionOptions) -> None:
    session_options.add_provider("OpenVINOExecutionProvider", {"num_of_threads": "1"})


def measured(
    body: bytes,
    feed: dict[str, np.ndarray],
    add: Callable[[onnxruntime.SessionOptions], None],
    repeats: int,
) -> list[str]:
    session_options = _options()
    session_options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    add(session_options)
    own = onnxruntime.InferenceSession(body, session_options)
    plain = onnxruntime.InferenceSession(body, _options(), providers=["CPUExecutionProvider"])
    (expected, *_), (found, *_) = plain.run(None, feed), own.run(None, feed)
    error = float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(BLOCKS):
        for session, its in zip((own, plain), times, strict=True):
            started = time.process_time()
            for _ in range(repeats):
                session.run(None, feed)
            its.append((time.process_time() - started) / repeats * 1e3)
    ours, theirs = (statistics.median(each) for each in times)
    return [_nodes(own), f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}", f"{error:.1e}"]


def _nodes(session: onnxruntime.InferenceSession) -> str:
    """Returns the number of nodes that the provider runs, of all nodes: the CPU provider has the
    others."""
    try:
        parts = session.get_provider_graph_assignment_info()
    except (AttributeError, RuntimeError):
        return "not told"
    own = sum(len(p.get_nodes()) for p in parts if p.ep_name != "CPUExecutionProvider")
    return f"{own} of {sum(len(part.get_nodes()) for part in parts)}"


def _options() -> onnxruntime.SessionOptions:
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = 1
    session_options.log_severity_level = 4
    return session_options


def models() -> Iterator[tuple[str, bytes, dict[str, np.ndarray]]]:
    """Two models with drawn weights, and two of the package onnx."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    yield "convolution", _model(nodes, [1, 16, 40, 40], weight), _feed(rng, [1, 16, 40, 40])
    weight = numpy_helper.from_array(rng.normal(0, 0.1, (256, 256)).astype(np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["c"]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    yield "matrices", _model(nodes, [64, 256], weight), _feed(rng, [64, 256])
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for name in ("light_squeezenet", "light_shufflenet"):
        body = (light / f"{name}.onnx").read_bytes()
        (given,) = onnxruntime.InferenceSession(body).get_inputs()
        yield name, body, {given.name: rng.normal(size=given.shape).astype(np.float32)}


def _model(nodes: list[onnx.NodeProto], shape: list[int], weight: onnx.TensorProto) -> bytes:
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, shape) for end in ("x", "y")]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], [weight])
    opsets = [helper.make_opsetid("", 17)]
    body: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return body


def _feed(rng: np.random.Generator, shape: list[int]) -> dict[str, np.ndarray]:
    return {"x": rng.normal(size=shape).astype(np.float32)}


if __name__ == "__main__":
    main()
