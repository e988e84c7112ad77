"""What can be said of an ONNX file without compiling it: its graph's digest, its data files."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from tunegate.errors import ModelError

_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}
_LARGEST_SHAPE = 64
"""Integer tensors up to this size are shapes, axes and indices: they are structure, not weights."""


def graph_digest(model: bytes) -> str:
    """sha-256 of the graph without tensor data: equal for two models that differ in weights only.

    Names of nodes and tensors count, documentation and the producer do not. Raises ModelError.
    """
    proto = _parse(model)
    for field in ("producer_name", "producer_version", "doc_string", "metadata_props"):
        proto.ClearField(field)
    _strip(proto.graph)
    for function in proto.functions:
        for node in function.node:
            _strip_node(node)
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()


def external_files(model: bytes) -> tuple[str, ...]:
    """The data files the model refers to, relative to it. Raises ModelError: unreadable, or a path
    that leaves the model's directory."""
    names: dict[str, None] = {}
    for tensor in _tensors(_parse(model).graph):
        for entry in tensor.external_data:
            if entry.key == "location":
                names.setdefault(entry.value)
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            message = f"its external data file {name!r} lies outside the model's directory"
            raise ModelError(message)
    return tuple(names)


def _parse(model: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        message = "not an ONNX file, or cut short"
        raise ModelError(message) from error
    if not proto.graph.node and not proto.graph.output:
        message = "an ONNX file without a graph"
        raise ModelError(message)
    return proto


def _strip(graph: onnx.GraphProto) -> None:
    graph.ClearField("doc_string")
    for tensor in graph.initializer:
        _forget_weights(tensor)
    for node in graph.node:
        _strip_node(node)


def _strip_node(node: onnx.NodeProto) -> None:
    node.ClearField("doc_string")
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _forget_weights(attribute.t)
        if attribute.HasField("g"):
            _strip(attribute.g)
        for graph in attribute.graphs:
            _strip(graph)


def _forget_weights(tensor: TensorProto) -> None:
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    if tensor.data_type in _INTEGERS and elements <= _LARGEST_SHAPE and not tensor.external_data:
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))  # one encoding for all
        return
    kept = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    tensor.CopyFrom(kept)


def _tensors(graph: onnx.GraphProto) -> list[TensorProto]:
    found = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                found.append(attribute.t)
            if attribute.HasField("g"):
                found.extend(_tensors(attribute.g))
            for inner in attribute.graphs:
                found.extend(_tensors(inner))
    return found
