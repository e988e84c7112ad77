"""What can be said of an ONNX file without compiling it: its graph's digest, its data files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx import TensorProto, numpy_helper

from tunegate.errors import ModelError

_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}
_LARGEST_SHAPE = 64
"""Integer tensors up to this size are shapes, axes and indices: they are structure, not weights."""

_SHAPED_BY_FLOATS = {"Resize", "Upsample", "Range"}
"""Operators whose output's shape comes from a tensor of floats."""


def graph_digest(model: bytes) -> str:
    """sha-256 of the graph without tensor data: equal for two models that differ in weights only.

    Names of nodes and tensors count, documentation and the producer do not. Raises ModelError.
    """
    proto = _parse(model)
    for field in ("producer_name", "producer_version", "doc_string", "metadata_props"):
        proto.ClearField(field)
    shaping = {name for node in _nodes(proto) if _is_shaped(node) for name in node.input if name}
    try:
        for tensor, name in _tensors(proto):
            _forget_weights(tensor, keep=name in shaping)
        for documented in (*_graphs(proto), *_nodes(proto), *proto.functions):
            documented.ClearField("doc_string")
        return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    except (ValueError, TypeError, EncodeError) as error:
        message = f"not a valid ONNX file: {error}"
        raise ModelError(message) from error


def external_files(model: bytes) -> tuple[str, ...]:
    """The data files the model refers to, relative to it. Raises ModelError: unreadable, or a path
    that leaves the model's directory."""
    names: dict[str, None] = {}
    for tensor, _ in _tensors(_parse(model)):
        for entry in tensor.external_data:
            if entry.key == "location":
                names.setdefault(entry.value)
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.name or "\0" in name:
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


def _is_shaped(node: onnx.NodeProto) -> bool:
    return node.op_type in _SHAPED_BY_FLOATS


def _forget_weights(tensor: TensorProto, *, keep: bool) -> None:
    is_small = math.prod(tensor.dims) <= _LARGEST_SHAPE
    if is_small and not tensor.external_data and (keep or tensor.data_type in _INTEGERS):
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))  # one encoding for all
        return
    kept = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    tensor.CopyFrom(kept)


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those inside its nodes and inside functions."""
    yield from _inside(model.graph)
    for function in model.functions:
        yield from _bodies(function.node)


def _inside(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    yield from _bodies(graph.node)


def _bodies(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    for node in nodes:
        for attribute in node.attribute:
            for graph in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _inside(graph)


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for graph in _graphs(model):
        yield from graph.node
    for function in model.functions:
        yield from function.node


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[TensorProto, str]]:
    """Every tensor with the name its value has in the graph."""
    for graph in _graphs(model):
        yield from ((tensor, tensor.name) for tensor in graph.initializer)
        for sparse in graph.sparse_initializer:
            yield sparse.values, sparse.values.name
            yield sparse.indices, sparse.values.name
    for node in _nodes(model):
        name = node.output[0] if node.output else ""
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t, name
            yield from ((tensor, name) for tensor in attribute.tensors)
