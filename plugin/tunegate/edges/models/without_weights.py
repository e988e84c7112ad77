"""A model without its large weights: all that its shapes follow from."""

from __future__ import annotations

import math

import onnx

from tunegate.edges.models.deciding_values import bodies_of

_OF_SHAPES = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}


def without_weights(model: onnx.ModelProto, most: int) -> onnx.ModelProto:
    """Returns a copy in which a tensor of more than `most` numbers has only its type and its
    extents. Whole numbers stay: shapes may be picked out of them."""
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
                if attribute.HasField("t"):
                    _lighten(attribute.t, most)
    return light


def _lighten(tensor: onnx.TensorProto, most: int) -> None:
    is_large = math.prod(tensor.dims) > most and tensor.data_type not in _OF_SHAPES
    if is_large or tensor.external_data:
        kept = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        tensor.CopyFrom(kept)
