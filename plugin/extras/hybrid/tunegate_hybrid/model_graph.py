"""An ONNX model as a graph that can be cut: which nodes a compiler may be asked about, about how
much each has to do, and each part as a model of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import helper

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.models.deciding_values import bodies_of
from tunegate.models.graph import STANDARD_DOMAINS
from tunegate.models.model_inputs import real_inputs
from tunegate.models.reference.value_types import ValueType
from tunegate_hybrid.partition import ModelPart, Node

_PRODUCTS = {"MatMul", "Gemm"}
_CONVOLUTION, _TRANSPOSED = "Conv", "ConvTranspose"
_RECURRENT = {"LSTM", "GRU", "RNN"}


class ModelGraph:
    """`types` are those of all that the nodes make, and of the inputs. Raises ValueError for a
    model with an output that no node makes."""

    def __init__(self, proto: onnx.ModelProto, types: Mapping[str, ValueType]) -> None:
        self._proto, self._types = proto, types
        graph = proto.graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        self._known = {*self._constants, *sparse}
        self._given = {value.name: value for value in real_inputs(graph)}
        self.outputs = tuple(value.name for value in graph.output)
        self.nodes = tuple(self._node(node) for node in graph.node)
        made = {name for node in self.nodes for name in node.outputs}
        if not made.issuperset(self.outputs):
            message = f"no node makes the output {min(set(self.outputs) - made)}"
            raise ValueError(message)

    def kind_of(self, place: int) -> tuple[object, ...]:
        """Returns a key that is equal for nodes that a compiler takes or refuses alike: operator,
        attributes, the types and ranks of its inputs, and which of these are constant."""
        node = self._proto.graph.node[place]
        return (
            node.op_type,
            tuple(each.SerializeToString(deterministic=True) for each in node.attribute),
            tuple(self._kind_of(name) for name in node.input),
            len(node.output),
        )

    @property
    def digest(self) -> str:
        """Equal where the same operators make outputs of the same shapes in the same order: other
        weights may be folded otherwise."""
        made = [
            (node.op_type, [self._shape(name) for name in node.output])
            for node in self._proto.graph.node
        ]
        return digest_of_document(made)

    def families(self) -> list[str]:
        """Returns the family of each expensive node; '' for all others."""
        return [_family(node.op_type) for node in self._proto.graph.node]

    def of_static_shapes(self) -> set[int]:
        """Returns the nodes whose tensors all are numbers in a shape that is known, without a graph
        inside: no other can be compiled."""
        return {
            place
            for place, node in enumerate(self.nodes)
            if self._proto.graph.node[place].domain in STANDARD_DOMAINS
            and not bodies_of(self._proto.graph.node[place])
            and all(self._is_static(name) for name in (*node.inputs, *node.outputs))
        }

    def type_of(self, name: str) -> ValueType:
        return self._types.get(name, ValueType("", None))

    def cut(self, part: ModelPart) -> onnx.ModelProto:
        """Returns the part as a model with its own copy of its constants. Raises ValueError where
        something goes into it that is no tensor of numbers."""
        graph = self._proto.graph
        nodes = [graph.node[place] for place in part.nodes]
        read = {name for node in nodes for name in _names_read(node)}
        of_part = helper.make_graph(
            nodes,
            "part",
            [self._given.get(name) or self._value(name) for name in part.inputs],
            [self._value(name, is_output=True) for name in part.outputs],
            [tensor for tensor in graph.initializer if tensor.name in read],
            sparse_initializer=[t for t in graph.sparse_initializer if t.values.name in read],
        )
        return helper.make_model(
            of_part,
            opset_imports=self._proto.opset_import,
            ir_version=self._proto.ir_version,
            functions=self._proto.functions,
        )

    def _node(self, node: onnx.NodeProto) -> Node:
        read = dict.fromkeys(name for name in _names_read(node) if name not in self._known)
        made = tuple(name for name in node.output if name)
        return Node(tuple(read), made, self._work(node))

    def _work(self, node: onnx.NodeProto) -> float:
        """The operations of the node; those that only move or map elements count one for each."""
        size = float(sum(math.prod(self._shape(name)) for name in node.output if name))
        if node.op_type in _PRODUCTS:
            return 2 * size * _inner(node, self._shape(node.input[0]))
        if node.op_type == _CONVOLUTION:
            return 2 * size * math.prod(self._shape(node.input[1])[1:])
        if node.op_type in _RECURRENT:
            steps = math.prod(self._shape(node.input[0])[:2])
            return 2.0 * steps * sum(math.prod(self._shape(name)) for name in node.input[1:3])
        if node.op_type == _TRANSPOSED:
            elements = math.prod(self._shape(node.input[0]))
            return 2.0 * elements * math.prod(self._shape(node.input[1])[1:])
        return size

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self._constants:
            return tuple(self._constants[name].dims)
        return self.type_of(name).shape or ()

    def _is_static(self, name: str) -> bool:
        return self.type_of(name).is_static

    def _kind_of(self, name: str) -> tuple[object, ...]:
        if name in self._known:
            constant = self._constants.get(name)
            return (
                (True, constant.data_type, len(constant.dims)) if constant is not None else (True,)
            )
        found = self.type_of(name)
        return (False, found.dtype, len(found.shape or ())) if name else ()

    def _value(self, name: str, *, is_output: bool = False) -> onnx.ValueInfoProto:
        found = self.type_of(name)
        if not found.dtype:
            if is_output:
                return onnx.ValueInfoProto(name=name)
            message = f"{name} is no tensor of numbers"
            raise ValueError(message)
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(found.dtype))
        return helper.make_tensor_value_info(name, dtype, found.shape)


def _family(op_type: str) -> str:
    if op_type in _PRODUCTS:
        return "product"
    if op_type in _RECURRENT:
        return "recurrence"
    return "convolution" if op_type in {_CONVOLUTION, _TRANSPOSED} else ""


def _inner(node: onnx.NodeProto, first: tuple[int, ...]) -> int:
    """The length of the sums of a product, by its first factor."""
    is_transposed = any(each.name == "transA" and each.i for each in node.attribute)
    return (first[0] if is_transposed else first[-1]) if first else 1


def _names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names that the node reads, and those that the graphs inside it read from
    outside."""
    yield from filter(None, node.input)
    for graph in bodies_of(node):
        own = {value.name for value in graph.input} | {t.name for t in graph.initializer}
        own |= {name for inner in graph.node for name in inner.output}
        yield from (name for inner in graph.node for name in _names_read(inner) if name not in own)
        yield from (value.name for value in graph.output if value.name not in own)
