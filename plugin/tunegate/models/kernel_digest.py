"""The digest that decides a model's kernels: models with equal digests compile to the same kernels
and tuning tasks, whatever their weights."""

import hashlib
import math
from collections.abc import Collection
from pathlib import Path

import onnx

from tunegate.models.graph import STANDARD_DOMAINS, graph_digest, has_fitted_numbers, tensors_of
from tunegate.system.onnx_scan import bodies_of, nodes_of, parsed_model

_FEW = 4
"""Tensors up to this size may be bounds, exponents, steps or zero points, which are compiled into
kernels or decide whether there is one."""
_TAKES_WEIGHTS = {
    "BatchNormalization",
    "Conv",
    "ConvTranspose",
    "GRU",
    "Gemm",
    "InstanceNormalization",
    "LSTM",
    "LayerNormalization",
    "MatMul",
    "RNN",
}
"""Their inputs after the first are only computed with, however few numbers they have."""
_OF_ELEMENTS = {"Add", "Div", "Mul", "PRelu", "Sub"}
"""So are theirs unless they are scalars: a scalar is compiled into the kernel, and a neutral one
removes the operator."""
_NEUTRAL = (0, 1)


def kernel_digest(model: Path) -> str | None:
    """Digests the graph, the values of small tensors, and which of the others are equal. None if
    that is unknown: the file is no model, or its numbers are in other files."""
    try:
        content = model.read_bytes()
        digest = hashlib.sha256(graph_digest(content).encode())
        proto = parsed_model(content)  # after that one's is gone: a file may be eight times larger
        weights = _only_computed_with(proto)
        first_seen: dict[bytes, int] = {}
        for tensor, name in tensors_of(proto):
            if tensor.external_data:
                return None
            text = _tensor_text(tensor, first_seen, is_weight=name in weights)
            digest.update(f"\n{text}".encode())
        for node in filter(has_fitted_numbers, nodes_of(proto)):
            digest.update(node.SerializeToString(deterministic=True))
    except Exception:  # noqa: BLE001 -- such a model is reported where it is opened
        return None
    return digest.hexdigest()


def _tensor_text(tensor: onnx.TensorProto, numbering: dict[bytes, int], *, is_weight: bool) -> str:
    values = onnx.numpy_helper.to_array(tensor)
    same = numbering.setdefault(hashlib.sha256(values.tobytes()).digest(), len(numbering))
    is_neutral = values.size == 1 and values.flat[0] in _NEUTRAL
    if is_neutral or (values.size <= _FEW and not (is_weight and values.ndim)):
        return repr(values.tolist())
    is_whole = values.dtype.kind in "iu" and bool((values == values.flat[0]).all())
    return repr(values.flat[0]) if is_whole else f"numbers {same}"


def _only_computed_with(proto: onnx.ModelProto) -> Collection[str]:
    """Returns the values that are only computed with."""
    weights, others = set[str](), {value.name for value in proto.graph.output}
    for node in nodes_of(proto):
        first = _first_weight(node)
        others.update(node.input[:first])
        weights.update(node.input[first:])
    return weights - others


def _first_weight(node: onnx.NodeProto) -> int:
    if node.domain not in STANDARD_DOMAINS:
        return len(node.input)
    if node.op_type in _OF_ELEMENTS:
        return 0
    return 1 if node.op_type in _TAKES_WEIGHTS else len(node.input)


# A model without its large weights, which still determines all shapes.

_OF_TREES = "ai.onnx.ml"
_OF_SHAPES = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}


def without_weights(model: onnx.ModelProto, most: int) -> onnx.ModelProto:
    """Returns a copy in which a tensor with more than `most` numbers keeps only its type and
    extents. Integers stay, as shapes may be picked out of them, and so do those of trees, which
    decide what to feed a model."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    waiting = [light.graph]
    while waiting:
        graph = waiting.pop()
        for tensor in graph.initializer:
            _lighten(tensor, most)
        for node in graph.node:
            waiting += bodies_of(node)
            for attribute in node.attribute:
                if attribute.HasField("t") and node.domain != _OF_TREES:
                    _lighten(attribute.t, most)
    return light


def _lighten(tensor: onnx.TensorProto, most: int) -> None:
    is_large = math.prod(tensor.dims) > most and tensor.data_type not in _OF_SHAPES
    if is_large or tensor.external_data:
        light = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        tensor.CopyFrom(light)
