"""The layers that differ between two artifacts.

A layer is its operator, its attributes, the sizes and types of what it reads, and the values of
small weights, which may decide a shape or a count. Names do not count: an export that renames all
layers changes none. Other weights do not count either.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from tunegate.artifacts.builds import BuiltTask
from tunegate.models.graph import forget_fitted_numbers, has_fitted_numbers, operator_of
from tunegate.models.kernel_digest import without_weights
from tunegate.system.onnx_scan import bodies_of
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
        for ours, theirs in _paired(base, head)
        if (ours in base_ran) == (theirs in head_ran)
    }
    back = {theirs: ours for ours, theirs in same.items()}
    at_base = _hosts(base, base.keys() - same.keys(), base_ran)
    at_head = _hosts(head, head.keys() - back.keys(), head_ran)
    other = at_base | {back[name] for name in at_head if name in back}
    kept = {ours: theirs for ours, theirs in same.items() if ours not in other}
    return Differing(
        frozenset(base_ran) - kept.keys(), frozenset(head_ran) - frozenset(kept.values())
    )


def _paired(base: Layers, head: Layers) -> Iterator[tuple[str, str]]:
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
    fused = [name for name in alone if name not in ran]
    return _nearest(fused, before, ran) | _nearest(fused, after, ran)


def _nearest(
    names: Collection[str], along: Mapping[str, Sequence[str]], ran: Collection[str]
) -> set[str]:
    """Returns the first layers that ran, along these edges."""
    seen, waiting, found = set(names), list(names), set[str]()
    while waiting:
        for name in along.get(waiting.pop(), ()):
            if name in ran:
                found.add(name)
            elif name not in seen:
                seen.add(name)
                waiting.append(name)
    return found


# What the layers of an artifact are.


def layers_of(directory: Path, artifact: ArtifactFile) -> Layers:
    """Returns the layers of an artifact: the tasks of a compiler, or the nodes of an ONNX file.
    None are known of other files."""
    if artifact.tasks:
        return _layers_of_tasks(msgspec.convert(artifact.tasks, list[BuiltTask]))
    file = directory / artifact.file
    if file.suffix != ".onnx":
        return {}
    model = onnx.load(file, load_external_data=False)
    return layers_in(model, {tensor.name: tensor.shape for tensor in artifact.inputs})


def _layers_of_tasks(tasks: Sequence[BuiltTask]) -> Layers:
    """Returns the tasks by name. Tasks of one name are timed together, and are one layer."""
    found: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        how = (task.key.workload, task.rid, task.weight, task.source == "tiles", task.algorithm)
        found[task.name].append(repr(how))
    return {name: Layer("\n".join(sorted(kinds))) for name, kinds in found.items()}


def layers_in(model: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> Layers:
    """Returns the nodes of a model by name, or by first output, where its inputs have these
    sizes. The nodes inside a loop or a branch are part of it, and layers themselves."""
    light = _with_shapes(model, sizes)
    found: dict[str, Layer] = {}
    makers: dict[str, str] = {}
    waiting = [(light.graph, "", _values_of(light.graph))]
    while waiting:
        graph, around, values = waiting.pop()
        for node in graph.node:
            kind = _kind(node, values, around)
            name = node.name or next(iter(node.output), "")
            before = (makers[each] for each in node.input if each in makers)
            found[name] = Layer(kind, tuple(dict.fromkeys(before)))
            makers |= dict.fromkeys(node.output, name)
            waiting += [(body, kind, {**values, **_values_of(body)}) for body in bodies_of(node)]
    return found


def _with_shapes(model: onnx.ModelProto, sizes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Returns the model without large weights, with the shapes of its values as far as they can be
    inferred."""
    light = without_weights(model, _MANY)
    for given in light.graph.input:
        if given.name in sizes and given.type.HasField("tensor_type"):
            given.type.tensor_type.shape.Clear()
            for size in sizes[given.name]:
                given.type.tensor_type.shape.dim.add(dim_value=size)
    try:
        return onnx.shape_inference.infer_shapes(light, data_prop=True)
    except Exception:  # noqa: BLE001 -- such a model is reported where it is opened
        return light


def _values_of(graph: onnx.GraphProto) -> dict[str, str]:
    """Returns the values of a graph in words, by name."""
    known = (*graph.input, *graph.value_info, *graph.output)
    found = {value.name: _type_text(value.type) for value in known}
    constants = {
        node.output[0]: _tensor_text(each.t)
        for node in graph.node
        if node.op_type == "Constant"
        for each in node.attribute
        if each.HasField("t")
    }
    weights = {tensor.name: _tensor_text(tensor) for tensor in graph.initializer}
    return found | constants | weights


def _type_text(kind: onnx.TypeProto) -> str:
    if not kind.HasField("tensor_type"):
        return str(kind.WhichOneof("value"))
    dims = [
        str(dim.dim_value) if dim.HasField("dim_value") else _UNKNOWN
        for dim in kind.tensor_type.shape.dim
    ]
    return f"{kind.tensor_type.elem_type} {'x'.join(dims)}"


def _tensor_text(tensor: TensorProto) -> str:
    size = math.prod(tensor.dims)
    text = f"weight {tensor.data_type} {'x'.join(map(str, tensor.dims))}"
    counts = size <= _FEW or (size <= _MANY and tensor.data_type in _INTEGERS)
    if not counts or tensor.external_data:
        return text
    return f"{text}{_VALUES}{numpy_helper.to_array(tensor).tolist()}"


def _kind(node: onnx.NodeProto, values: Mapping[str, str], around: str) -> str:
    """Returns the digest of what a node is, inside the node `around` if there is one."""
    reads = [values.get(name, _UNKNOWN) if name else "" for name in node.input]
    if _QUANTIZES in node.op_type:
        reads = [text.split(_VALUES)[0] for text in reads]
    if has_fitted_numbers(node):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        forget_fitted_numbers(copy)
        node = copy
    given = sorted(f"{each.name}: {_attribute_text(each)}" for each in node.attribute)
    text = repr((around, operator_of(node), reads, given, len(node.output)))
    return hashlib.sha256(text.encode()).hexdigest()


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
    values = _values_of(graph)
    return repr([_kind(node, values, "") for node in graph.node])
