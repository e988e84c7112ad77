"""The layers of a model that have a loop nest to tile, read from its graph: convolutions and
products. Poolings, normalizations and softmax have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
from onnx import shape_inference

from research.experience.layers.layer import Attribute, LayerKind, ModelLayer, Sizes
from tunegate.errors import ModelError
from tunegate.models.model_inputs import real_inputs
from tunegate.ports import Shapes
from tunegate.system.onnx_scan import parsed_model

_FOLLOWING = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "HardSigmoid")
_PRODUCTS = ("MatMul", "Gemm")
_FOLDED = "BatchNormalization"
_MOST_FOLLOWING = 3
_MOST_OPERANDS = 5
_MATRIX = 2
_CHANNELS = 1


class _Graph:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = _constants(graph)
        values = (*graph.input, *graph.value_info, *graph.output)
        self.shapes = {value.name: _sizes(value) for value in values}
        self.shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        kinds = {value.name: value.type.tensor_type.elem_type for value in values}
        kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
        self.floats = {name for name, kind in kinds.items() if kind == onnx.TensorProto.FLOAT}
        self.uses = Counter(name for node in graph.node for name in node.input)
        self.uses.update(value.name for value in graph.output)
        self.maker = {name: node.op_type for node in graph.node for name in node.output}
        self.reader = {name: node for node in graph.node for name in node.input}

    def is_known(self, name: str) -> bool:
        """Returns True where it is float32, with all its sizes."""
        shape = self.shapes.get(name, ())
        return name in self.floats and bool(shape) and 0 not in shape


def _constants(graph: onnx.GraphProto) -> set[str]:
    computed = {node.output[0] for node in graph.node if node.op_type == "Constant"}
    return computed | {tensor.name for tensor in graph.initializer}


def _sizes(value: onnx.ValueInfoProto) -> Sizes:
    """Those of a tensor, 0 where one is not known."""
    return tuple(int(dim.dim_value) for dim in value.type.tensor_type.shape.dim)


def layers_of(file: Path, shapes: Shapes) -> list[ModelLayer]:
    """The layers of float32 with sizes that are known, each as often as it occurs; none of a file
    that cannot be read."""
    try:
        model = parsed_model(file.read_bytes())
    except ModelError:
        return []
    for value in real_inputs(model.graph):
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(value.name, ()), strict=False):
            dim.dim_value = size
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # noqa: BLE001 -- onnx raises several kinds, all of which say "not known"
        return []
    return list(_layers(_Graph(graph)))


def _layers(graph: _Graph) -> Iterator[ModelLayer]:
    for node in graph.graph.node:
        operands = [name for name in node.input[:_MOST_OPERANDS] if name]
        known = node.domain in {"", "ai.onnx"} and all(map(graph.is_known, operands))
        if not known or not graph.is_known(node.output[0]) or _is_folded(graph, node):
            continue
        shapes = tuple(graph.shapes[name] for name in operands)
        constants = tuple(i for i, name in enumerate(operands) if name in graph.constants)
        attributes = _attributes(node)
        kind = _kind(node.op_type, shapes, constants, attributes)
        if kind is not None:
            yield ModelLayer(
                operator=node.op_type,
                kind=kind,
                operands=shapes,
                constants=constants,
                attributes=attributes,
                follows=tuple(_following(graph, node)),
            )


def _kind(
    operator: str,
    shapes: tuple[Sizes, ...],
    constants: tuple[int, ...],
    attributes: Mapping[str, Attribute],
) -> LayerKind | None:
    """The kind of a layer that is drawn, else None."""
    if 0 in constants:
        return None
    if operator == "Conv" and 1 in constants:
        return _kind_of_convolution(shapes, attributes)
    if operator in _PRODUCTS and min(map(len, shapes[:_MATRIX])) >= _MATRIX:
        if 1 in constants:
            return "product"
        return "batched-product" if operator == "MatMul" else None
    return None


def _kind_of_convolution(
    shapes: tuple[Sizes, ...], attributes: Mapping[str, Attribute]
) -> LayerKind:
    group = attributes.get("group", 1)
    if group != 1:
        return "depthwise" if group == shapes[0][_CHANNELS] else "grouped"
    return "pointwise" if set(shapes[1][_MATRIX:]) == {1} else "convolution"


def _attributes(node: onnx.NodeProto) -> dict[str, Attribute]:
    """Numbers, lists of them and words; what is a tensor or a graph belongs to no such layer."""
    found: dict[str, Attribute] = {}
    for attribute in node.attribute:
        match attribute.type:
            case onnx.AttributeProto.INT:
                found[attribute.name] = int(attribute.i)
            case onnx.AttributeProto.FLOAT:
                found[attribute.name] = float(attribute.f)
            case onnx.AttributeProto.STRING:
                found[attribute.name] = attribute.s.decode(errors="replace")
            case onnx.AttributeProto.INTS:
                found[attribute.name] = tuple(int(each) for each in attribute.ints)
            case _:
                pass
    return found


def _is_folded(graph: _Graph, node: onnx.NodeProto) -> bool:
    """Returns True where it becomes a part of the weights of the convolution before it."""
    return node.op_type == _FOLDED and graph.maker.get(node.input[0]) == "Conv"


def _following(graph: _Graph, node: onnx.NodeProto) -> Iterator[str]:
    """Yields the operators that a compiler fuses with it: element-wise ones behind it, in order."""
    output = node.output[0]
    for _ in range(_MOST_FOLLOWING):
        following = graph.reader.get(output)
        if following is None or graph.uses[output] != 1:
            return
        if _is_folded(graph, following):
            output = following.output[0]
            continue
        name = _follower_name(graph, following, output)
        if name is None:
            return
        yield name
        output = following.output[0]


def _follower_name(graph: _Graph, following: onnx.NodeProto, output: str) -> str | None:
    if following.op_type in _FOLLOWING:
        return following.op_type
    if following.op_type != "Add":
        return None
    (other,) = [name for name in following.input if name != output] or [""]
    shape, own = graph.shapes.get(other, ()), graph.shapes[output]
    if other in graph.constants and shape == own[-1:]:
        return "bias"
    return "residual" if other not in graph.constants and shape == own else None
