"""The body of a network as an ONNX model, run by ONNX Runtime: no training library, no pickle.

A file is another's: its numbers alone are taken, within bounds, and the model that runs is made of
them here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from research.experience.network.network_card import HIDDEN, WIDTH
from research.experience.network.network_ranker import NetworkBody
from tunegate.tune.prior import NEST_COLUMNS

MAX_BODY_BYTES = 1 << 20
_OPERATORS = ("Gemm", "Relu", "Gemm", "Tanh")
_SHAPES = {
    "first_weight": (NEST_COLUMNS, HIDDEN),
    "first_bias": (HIDDEN,),
    "second_weight": (HIDDEN, WIDTH),
    "second_bias": (WIDTH,),
}
_OPSET, _IR = 17, 8


class BodyError(ValueError):
    """A file is no body of a network of this version; the text says why."""


def body_bytes(numbers: dict[str, np.ndarray]) -> bytes:
    """The model of one input, a row of scaled columns for each candidate, and one output."""
    nodes = [
        helper.make_node("Gemm", ["columns", "first_weight", "first_bias"], ["first"]),
        helper.make_node("Relu", ["first"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "second_weight", "second_bias"], ["second"]),
        helper.make_node("Tanh", ["second"], ["features"]),
    ]
    given, made = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["candidates", width])]
        for name, width in (("columns", NEST_COLUMNS), ("features", WIDTH))
    )
    constants = [numpy_helper.from_array(numbers[name], name) for name in _SHAPES]
    graph = helper.make_graph(nodes, "body", given, made, constants)
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, ir_version=_IR, opset_imports=opsets)
    return bytes(model.SerializeToString())


def body_numbers(model: bytes) -> dict[str, np.ndarray]:
    """The numbers of a file that `body_bytes` may have made. Raises BodyError."""
    if len(model) > MAX_BODY_BYTES:
        raise BodyError(f"it has {len(model)} bytes; {MAX_BODY_BYTES} are read at most")
    try:
        graph = onnx.ModelProto.FromString(model).graph
    except DecodeError as error:
        raise BodyError("it is no ONNX model") from error
    operators = tuple(node.op_type for node in graph.node)
    if operators != _OPERATORS:
        raise BodyError(f"its operators are not {', '.join(_OPERATORS)}")
    if sorted(tensor.name for tensor in graph.initializer) != sorted(_SHAPES):
        raise BodyError("its constants have other names")
    return {tensor.name: _numbers(tensor) for tensor in graph.initializer}


def body_of(model: bytes) -> NetworkBody:
    """The body, run by ONNX Runtime. Raises BodyError."""
    from tunegate.models.reference.session import ReferenceSession  # noqa: PLC0415

    session = ReferenceSession(body_bytes(body_numbers(model)))
    return lambda columns: np.asarray(session.run({"columns": columns})[0])


def _numbers(tensor: Any) -> np.ndarray:
    shape = _SHAPES[tensor.name]
    is_raw = len(tensor.raw_data) == 4 * int(np.prod(shape)) and not tensor.external_data
    if tensor.data_type != TensorProto.FLOAT or tuple(tensor.dims) != shape or not is_raw:
        raise BodyError(f"{tensor.name} is no block of {shape} numbers")
    found = np.frombuffer(tensor.raw_data, "<f4").reshape(shape)
    if not np.isfinite(found).all():
        raise BodyError(f"{tensor.name} has numbers that are not finite")
    return found
