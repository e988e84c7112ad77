"""The layers that differ between two artifacts.

A layer is its operator, its attributes, the sizes and types of what it reads, and the values of
small weights, which may decide a shape or a count. Where such a value is computed, or a size is not
known, the layer that makes it counts instead. Names do not count: an export that renames all layers
changes none. Other weights do not count either.
"""

import hashlib
import math
from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor
from onnx.inliner import inline_local_functions

from tunegate.artifacts.builds import BuiltTask
from tunegate.models.graph import (
    STANDARD_DOMAINS,
    forget_fitted_numbers,
    graphs_of,
    has_fitted_numbers,
    operator_of,
    tensors_of,
)
from tunegate.models.kernel_digest import without_weights
from tunegate.system.onnx_scan import bodies_of, nodes_of
from tunegate.system.output.artifact_file import ArtifactFile


class Layer(NamedTuple):
    """A layer: a text that is equal for equal layers, and the names of those that it reads from."""

    kind: str
    before: tuple[str, ...] = ()


Layers = Mapping[str, Layer]
"""The layers of a model by name."""
_FEW, _MANY = 4, 64
"""The values of so few numbers count, and of so many integers."""
_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}
_UNKNOWN, _VALUES = "?", " = "
_QUANTIZES = "Linear"
"""Operators with this in their name have scales and zero points, which are other ones after each
training."""
_OF_INTEGERS = tuple(f"{integer} " for integer in _INTEGERS)
_OF_SIZES_ALONE = {"Shape", "Size"}
"""Operators whose result does not depend on the numbers that they read."""
_ALONG_AXIS, _AXIS = {"Hardmax", "LogSoftmax", "Softmax"}, 13
"""These operators are along an axis since that version."""
_SIZED_BY_NUMBERS = {
    "Compress",
    "If",
    "Loop",
    "NonMaxSuppression",
    "NonZero",
    "OneHot",
    "Range",
    "Resize",
    "StringNormalizer",
    "StringSplit",
    "Unique",
    "Upsample",
}
"""Operators that read more than a few integers to decide the size of their result."""


class Differing(NamedTuple):
    """The layers of either side that the other one lacks, or runs otherwise."""

    base: frozenset[str]
    head: frozenset[str]


def differing_layers(
    base: Layers, head: Layers, base_ran: Collection[str], head_ran: Collection[str]
) -> Differing:
    """Returns the layers that differ, of those that ran.

    Equal layers are paired, those of one name first. A layer that ran by itself on one side alone
    differs: a change beside it fused it, or no longer does. A layer that differs and did not run by
    itself is fused with one beside it, which then differs on both sides. An unknown layer, which an
    optimizer added, differs, too.
    """
    same = {
        ours: theirs
        for ours, theirs in _pair_layers(base, head)
        if (ours in base_ran) == (theirs in head_ran)
    }
    back = {theirs: ours for ours, theirs in same.items()}
    at_base = _hosts(base, base.keys() - same.keys(), base_ran)
    at_head = _hosts(head, head.keys() - back.keys(), head_ran)
    other = at_base | {back[name] for name in at_head if name in back}
    pairs = {ours: theirs for ours, theirs in same.items() if ours not in other}
    return Differing(
        frozenset(base_ran) - pairs.keys(), frozenset(head_ran) - frozenset(pairs.values())
    )


def _pair_layers(base: Layers, head: Layers) -> Iterator[tuple[str, str]]:
    """Yields the names of equal layers. If one side has more of a kind, its last ones are left."""
    kinds: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, layers in enumerate((base, head)):
        for name, layer in layers.items():
            kinds[layer.kind][side].append(name)
    for ours, theirs in kinds.values():
        shared = set(ours) & set(theirs)
        yield from ((name, name) for name in ours if name in shared)
        rest = (name for name in theirs if name not in shared)
        yield from zip((name for name in ours if name not in shared), rest, strict=False)


def _hosts(layers: Layers, alone: Collection[str], ran: Collection[str]) -> set[str]:
    """Returns the layers that ran next to those of `alone` that did not, before and after them: one
    of them has computed their part."""
    before = {name: layer.before for name, layer in layers.items()}
    after: dict[str, list[str]] = defaultdict(list)
    for name, names in before.items():
        for each in names:
            after[each].append(name)
    inner_layers = [name for name in alone if name not in ran]
    return _nearest_layers(inner_layers, before, ran) | _nearest_layers(inner_layers, after, ran)


def _nearest_layers(
    names: Collection[str], along: Mapping[str, Sequence[str]], ran: Collection[str]
) -> set[str]:
    """Returns the first layers that ran, along these edges."""
    visited, waiting, nearest = set(names), list(names), set[str]()
    while waiting:
        for name in along.get(waiting.pop(), ()):
            if name in ran:
                nearest.add(name)
            elif name not in visited:
                visited.add(name)
                waiting.append(name)
    return nearest


# What the layers of an artifact are.


class _Origin(NamedTuple):
    """Digests of the layers that decide a value: its size, and its numbers."""

    size: str
    numbers: str


class _Values(NamedTuple):
    """The values of a graph by name, those around it behind its own: in words, and where they come
    from."""

    words: ChainMap[str, str]
    origins: ChainMap[str, _Origin]

    def inside(self, body: onnx.GraphProto) -> "_Values":
        return _Values(self.words.new_child(_values_of(body)), self.origins.new_child())

    def read_by(self, node: onnx.NodeProto) -> list[str]:
        """Returns what a node reads. What words do not say of a value, its origin decides."""
        read = [self.words.get(name, _UNKNOWN) if name else "" for name in node.input]
        if _QUANTIZES in node.op_type:
            read = [text.split(_VALUES)[0] for text in read]
        pairs = zip(node.input, read, strict=True)
        return [f"{text} {self._missing(name, text)}" for name, text in pairs]

    def _missing(self, name: str, text: str) -> str:
        origin = self.origins.get(name) if _UNKNOWN in text else None
        if origin is None:
            return ""
        return origin.numbers if text.startswith(_OF_INTEGERS) else origin.size

    def add(self, node: onnx.NodeProto, kind: str) -> None:
        """Adds what a node of this kind computes."""
        read = [self.origins[name].numbers for name in _reads(node) if name in self.origins]
        numbers = kind if node.op_type in _OF_SIZES_ALONE else _digest(kind, read)
        is_standard = node.domain in STANDARD_DOMAINS and node.op_type not in _SIZED_BY_NUMBERS
        size = kind if is_standard else numbers
        for at, name in enumerate(node.output):
            self.origins[name] = _Origin(f"{size} {at}", f"{numbers} {at}")


def _outermost(graph: onnx.GraphProto) -> _Values:
    return _Values(ChainMap(_values_of(graph)), ChainMap())


def _digest(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """Yields the names of what a node and those inside it read."""
    yield from node.input
    for body in bodies_of(node):
        for each in body.node:
            yield from _reads(each)


def layers_of(directory: Path, artifact: ArtifactFile) -> Layers:
    """Returns the layers of an artifact: the tasks of a compiler, or the nodes of an ONNX file.
    None are known of other files."""
    if artifact.tasks:
        return _layers_of_tasks(msgspec.convert(artifact.tasks, list[BuiltTask]))
    file = directory / artifact.file
    if file.suffix != ".onnx":
        return {}
    model = onnx.load(file, load_external_data=False)
    for tensor, _ in tensors_of(model):
        if tensor.external_data and _counts(tensor.data_type, tensor.dims):
            load_external_data_for_tensor(tensor, str(directory))
            tensor.data_location = TensorProto.DEFAULT  # older versions of onnx leave it
            del tensor.external_data[:]
    return layers_in(model, {tensor.name: tensor.shape for tensor in artifact.inputs})


def _layers_of_tasks(tasks: Sequence[BuiltTask]) -> Layers:
    """Returns the tasks by name."""
    kinds_of: dict[str, list[Layer]] = defaultdict(list)
    for task in tasks:
        how = (task.key.workload, task.rid, task.weight, task.source == "tiles", task.algorithm)
        kinds_of[task.name].append(Layer(repr(how)))
    return {name: _together(layers) for name, layers in kinds_of.items()}


def layers_in(model: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> Layers:
    """Returns the nodes of a model by name, or by first output, where its inputs have these
    sizes. The nodes inside a loop or a branch are part of it, and layers themselves."""
    light = _with_shapes(model, sizes)
    layers_of: dict[str, list[Layer]] = defaultdict(list)
    names: dict[str, str] = {}
    waiting = [(light.graph, "", _outermost(light.graph))]
    while waiting:
        graph, around, values = waiting.pop()
        for node in graph.node:
            kind = _kind(node, values, around)
            name = node.name or next(iter(node.output), "")
            layers_of[name].append(Layer(kind, tuple(names[x] for x in node.input if x in names)))
            names |= dict.fromkeys(node.output, name)
            values.add(node, kind)
            waiting += [(body, kind, values.inside(body)) for body in bodies_of(node)]
    return {name: _together(layers) for name, layers in layers_of.items()}


def _together(layers: Sequence[Layer]) -> Layer:
    """Returns layers of one name as one: they are timed together."""
    before = dict.fromkeys(name for layer in layers for name in layer.before)
    return Layer("\n".join(sorted(layer.kind for layer in layers)), tuple(before))


def _with_shapes(model: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Returns the model without large weights, with the shapes of its values as far as they can be
    inferred, and the nodes of a function in place of each call. Shapes that the file states are not
    believed: a changed model may have old ones."""
    light = without_weights(model, _MANY)
    for graph in graphs_of(light):
        del graph.value_info[:]
        values = graph.output if graph is light.graph else (*graph.input, *graph.output)
        for value in values:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
    for model_input in light.graph.input:
        if model_input.name in sizes and model_input.type.HasField("tensor_type"):
            model_input.type.tensor_type.shape.Clear()
            for size in sizes[model_input.name]:
                model_input.type.tensor_type.shape.dim.add(dim_value=size)
    with suppress(Exception):  # such a model is reported where it is opened
        light = inline_local_functions(light) if light.functions else light
        light = onnx.shape_inference.infer_shapes(light, data_prop=True)
    _mark_operators(light)
    return light


def _mark_operators(model: onnx.ModelProto) -> None:
    """Separates operators of one name: calls of functions by what these are, where one of another
    version stayed, and those of before version 13 that make a matrix of what they read."""
    digest = hashlib.sha256()
    for function in model.functions:
        digest.update(function.SerializeToString(deterministic=True))
    functions = {(function.domain, function.name) for function in model.functions}
    is_old = any(x.domain in STANDARD_DOMAINS and x.version < _AXIS for x in model.opset_import)
    for node in nodes_of(model):
        if (node.domain, node.op_type) in functions:
            node.overload = digest.hexdigest()
        elif is_old and node.op_type in _ALONG_AXIS and node.domain in STANDARD_DOMAINS:
            node.overload = "of a matrix"


def _values_of(graph: onnx.GraphProto) -> dict[str, str]:
    """Returns the values of a graph in words, by name."""
    values = (*graph.input, *graph.value_info, *graph.output)
    types = {value.name: _type_text(value.type) for value in values}
    constants = {
        node.output[0]: _tensor_text(each.t)
        for node in graph.node
        if node.op_type == "Constant"
        for each in node.attribute
        if each.HasField("t")
    }
    weights = {tensor.name: _tensor_text(tensor) for tensor in graph.initializer}
    sparse = {x.values.name: _sizes_text("sparse", x.dims) for x in graph.sparse_initializer}
    return types | constants | weights | sparse


def _type_text(kind: onnx.TypeProto) -> str:
    if not kind.HasField("tensor_type"):
        return f"{kind.WhichOneof('value')} {_UNKNOWN}"
    element, dims = kind.tensor_type.elem_type, kind.tensor_type.shape.dim
    if not kind.tensor_type.HasField("shape"):
        return _sizes_text(element, [_UNKNOWN])
    sizes = [dim.dim_value if dim.HasField("dim_value") else _UNKNOWN for dim in dims]
    text = _sizes_text(element, sizes)
    known_sizes = [size for size in sizes if isinstance(size, int)]
    is_counted = (
        element in _INTEGERS and len(known_sizes) == len(sizes) and _counts(element, known_sizes)
    )
    return f"{text}{_VALUES}{_UNKNOWN}" if is_counted else text


def _tensor_text(tensor: TensorProto) -> str:
    text = _sizes_text(f"weight {tensor.data_type}", tensor.dims)
    if not _counts(tensor.data_type, tensor.dims) or tensor.external_data:
        return text
    return f"{text}{_VALUES}{numpy_helper.to_array(tensor).tolist()}"


def _sizes_text(what: object, sizes: Iterable[object]) -> str:
    return f"{what} {'x'.join(map(str, sizes))}"


def _counts(element: int, sizes: Iterable[int]) -> bool:
    """Returns whether the values of a tensor of this type and these sizes count."""
    size = math.prod(sizes)
    return size <= _FEW or (size <= _MANY and element in _INTEGERS)


def _kind(node: onnx.NodeProto, values: _Values, around: str) -> str:
    """Returns the digest of what a node is, inside the node `around` if there is one."""
    reads = values.read_by(node)
    if has_fitted_numbers(node):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        forget_fitted_numbers(copy)
        node = copy
    attributes = sorted(f"{each.name}: {_attribute_text(each)}" for each in node.attribute)
    return _digest(around, operator_of(node), node.overload, reads, attributes, len(node.output))


def _attribute_text(attribute: AttributeProto) -> str:
    match attribute.type:
        case AttributeProto.TENSOR:
            return _tensor_text(attribute.t)
        case AttributeProto.GRAPH:
            return _graph_text(attribute.g)
        case AttributeProto.GRAPHS:
            return repr([_graph_text(graph) for graph in attribute.graphs])
        case _:
            bare = AttributeProto()
            bare.CopyFrom(attribute)
            bare.ClearField("doc_string")
            return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()


def _graph_text(graph: onnx.GraphProto) -> str:
    """Returns the nodes of a body in order."""
    values, kinds = _outermost(graph), list[str]()
    for node in graph.node:
        kinds.append(_kind(node, values, ""))
        values.add(node, kinds[-1])
    return repr(kinds)
