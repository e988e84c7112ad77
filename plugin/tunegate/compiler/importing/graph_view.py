"""Known facts about the values of a graph: extents, types and constants."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tunegate.models.graph import STANDARD_DOMAINS, operator_of
from tunegate.models.kernel_digest import without_weights
from tunegate.system.onnx_scan import bodies_of

_MANY = 4096
"""A constant with more elements is a weight: no shape depends on it."""
_SUM_AXES_ARE_INPUTS, _AXES_ARE_INPUTS = 13, 18
_OF_SINGLE_NUMBERS = frozenset({"Abs", "Cast", "CastLike", "Exp", "Log", "Neg", "Sqrt"})


class TensorType(NamedTuple):
    """A tensor whose extents are known."""

    shape: tuple[int, ...]
    elements: int
    """ONNX's number of the element type."""

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(self.elements))

    @property
    def rank(self) -> int:
        return len(self.shape)


class GraphView:
    """A graph of a model as the rewriting rules see it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = _infer_shapes(model).graph
        self.opset = self.opset_of(model)
        values = (*graph.value_info, *graph.output, *graph.input)
        self._types = dict(_types(values))
        self._types |= _types_backwards(model.graph, self._types, values)
        self.nodes = model.graph.node
        self._users: dict[str, set[str]] = {}
        for node in model.graph.node:
            for name in node.input:
                self._users.setdefault(name, set()).add(operator_of(node))
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in model.graph.node:
            self._constants.update(_constant_of(node))

    @staticmethod
    def opset_of(model: onnx.ModelProto) -> int:
        """The version of ONNX's own operator set."""
        return next((o.version for o in model.opset_import if o.domain in STANDARD_DOMAINS), 1)

    def type_of(self, name: str) -> TensorType | None:
        """Returns the type, None if the rank or an extent is unknown or the value is no tensor."""
        tensor = self._constants.get(name)
        if tensor is not None:
            return TensorType(tuple(tensor.dims), tensor.data_type)
        return self._types.get(name)

    def constant(self, name: str) -> np.ndarray | None:
        """Returns the value in its own shape and dtype, None if it is known only at run time or is
        left out."""
        tensor = self._constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def users_of(self, name: str) -> frozenset[str]:
        """Returns the operators that read a value."""
        return frozenset(self._users.get(name, ()))


def sort_nodes(graph: onnx.GraphProto) -> None:
    """Puts each node behind those whose results it reads, as ONNX asks and ONNX Runtime does not.
    A graph in order stays as it is."""
    producer = {
        name: place for place, node in enumerate(graph.node) for name in node.output if name
    }
    before = {
        place: {producer[name] for name in _reads(node) if name in producer}
        for place, node in enumerate(graph.node)
    }
    if any(max(places, default=-1) >= place for place, places in before.items()):
        nodes = [graph.node[place] for place in TopologicalSorter(before).static_order()]
        copies = onnx.GraphProto(node=nodes)
        del graph.node[:]
        graph.node.extend(copies.node)


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    """Yields what a node and its bodies read of the graph around it. A body may call its own values
    by names of that graph, and ONNX Runtime goes by the nearest."""
    yield from node.input
    for body in bodies_of(node):
        inner_outputs = (name for inner in body.node for name in inner.output)
        own = {each.name for each in (*body.input, *body.initializer)}.union(inner_outputs)
        read = {name for inner in body.node for name in _reads(inner)}
        yield from read.union(value.name for value in body.output) - own


def operand(node: onnx.NodeProto, place: int) -> str:
    """Returns the name of an input, '' if it is left out."""
    return node.input[place] if place < len(node.input) else ""


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """Returns the value of an attribute, text as `str`, or the default if the node has none."""
    match = next((each for each in node.attribute if each.name == name), None)
    if match is None:
        return default
    value = onnx.helper.get_attribute_value(match)
    return [_text(one) for one in value] if isinstance(value, list) else _text(value)


def copy_of(node: onnx.NodeProto) -> onnx.NodeProto:
    """Returns a copy of the node, to be changed."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def without_attributes(node: onnx.NodeProto, names: set[str]) -> onnx.NodeProto:
    """Returns a copy of the node without the attributes of these names."""
    copy = copy_of(node)
    del copy.attribute[:]
    copy.attribute.extend(each for each in node.attribute if each.name not in names)
    return copy


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    try:
        light = without_weights(model, _MANY)
        return onnx.shape_inference.infer_shapes(light, data_prop=True)
    except (onnx.shape_inference.InferenceError, ValueError):  # larger than protobuf's limit
        return model


def _types(values: Iterable[onnx.ValueInfoProto]) -> Iterable[tuple[str, TensorType]]:
    for value in values:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
            continue
        if all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shape = tuple(int(dim.dim_value) for dim in kind.shape.dim)
            yield value.name, TensorType(shape, kind.elem_type)


def _types_backwards(
    graph: onnx.GraphProto,
    types: Mapping[str, TensorType],
    values: Iterable[onnx.ValueInfoProto],
) -> dict[str, TensorType]:
    """Infers the input types of element-wise operators from their declared output."""
    elements = {value.name: value.type.tensor_type.elem_type for value in values}
    input_types: dict[str, TensorType] = {}
    for node in reversed(graph.node):
        if operator_of(node) not in _OF_SINGLE_NUMBERS or node.input[0] in types:
            continue
        after = types.get(node.output[0]) or input_types.get(node.output[0])
        if after is not None and elements.get(node.input[0]):
            input_types[node.input[0]] = TensorType(after.shape, elements[node.input[0]])
    return input_types


def _constant_of(node: onnx.NodeProto) -> dict[str, onnx.TensorProto]:
    if operator_of(node) != "Constant":
        return {}
    (value_attribute,) = node.attribute
    value = onnx.helper.get_attribute_value(value_attribute)
    if isinstance(value, onnx.TensorProto):
        return {node.output[0]: value}
    kind = {"value_int": np.int64, "value_ints": np.int64}.get(value_attribute.name, np.float32)
    if value_attribute.name in {"value_string", "value_strings", "sparse_value"}:
        return {}
    return {node.output[0]: numpy_helper.from_array(np.asarray(value, kind))}


# The nodes that replace one node.


class Replacement:
    """Collects nodes. Their names begin with the first output of the replaced node, so they are
    unique in the model."""

    def __init__(self, node: onnx.NodeProto) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._prefix = node.name or next(name for name in node.output if name)
        self._unique = next(name for name in node.output if name)

    def add(
        self, operator: str, inputs: Sequence[str], *, to: str | None = None, **attributes: Any
    ) -> str:
        """Adds a node with one output, called `to`, and returns the output's name."""
        output = to or f"{self._unique}/{operator}{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                operator, inputs, [output], name=f"{self._prefix}/{len(self.nodes)}", **attributes
            )
        )
        return output

    def copy(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        """Adds a copy of a node. `names` has the new names of what it reads, and gets those of what
        it makes."""
        copy, place = copy_of(node), len(self.nodes)
        names.update({name: f"{self._unique}/{place}/{name}" for name in node.output if name})
        copy.name = f"{self._prefix}/{place}"
        copy.input[:] = [names.get(name, name) for name in node.input]
        copy.output[:] = [names.get(name, "") for name in node.output]
        self.nodes.append(copy)

    def add_reduction(
        self, operator: str, value: str, axes: Sequence[int], opset: int, *, keepdims: int = 1
    ) -> str:
        """Adds a reduction along axes, which newer operator sets take as an input."""
        if opset < (_SUM_AXES_ARE_INPUTS if operator == "ReduceSum" else _AXES_ARE_INPUTS):
            return self.add(operator, [value], axes=list(axes), keepdims=keepdims)
        return self.add(operator, [value, self.constant(axes, np.int64)], keepdims=keepdims)

    def constant(self, value: Any, dtype: Any = None, *, to: str | None = None) -> str:
        """Adds a constant and returns its name."""
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return self.add("Constant", [], to=to, value=tensor)

    def add_reshape(self, value: str, shape: Sequence[int], *, to: str | None = None) -> str:
        """Adds a reshape to known extents."""
        is_empty = {"allowzero": 1} if 0 in shape else {}  # otherwise 0 keeps an extent
        return self.add("Reshape", [value, self.constant(shape, np.int64)], to=to, **is_empty)

    def cast(self, value: str, elements: int, *, to: str | None = None) -> str:
        """Adds a cast to a type, given by its ONNX number."""
        output = self.add("Cast", [value], to=to)
        self.nodes[-1].attribute.append(helper.make_attribute("to", elements))
        return output

    def add_slice(self, value: str, axis: int, start: int, end: int) -> str:
        """Adds a slice of one axis."""
        bounds = [self.constant([number], np.int64) for number in (start, end, axis)]
        return self.add("Slice", [value, *bounds])
