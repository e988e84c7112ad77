"""Names of operators: ONNX's own domain may be left out or written out."""

import hashlib
import itertools
import math
import struct
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence

import onnx
from google.protobuf.message import EncodeError
from onnx import TensorProto, numpy_helper

from tunegate.artifacts.changes import ModelOutline
from tunegate.errors import ModelError
from tunegate.models.deciding_values import chosen_by_inputs, deciding_values
from tunegate.models.model_inputs import graph_inputs
from tunegate.system.onnx_scan import bodies_of, nodes_of, parsed_model

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


def operator_of(node: onnx.NodeProto) -> str:
    """Returns an operator's name, with its domain unless that is ONNX's own."""
    return node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"


_OF_EXTENSIONS = {"ai.onnx.contrib", "com.microsoft.extensions"}
"""The domains of onnxruntime-extensions, which are among ONNX's and Microsoft's own."""
_KNOWN_DOMAINS = ("ai.onnx", "com.microsoft", "com.ms.internal", "org.pytorch.aten")


SHOWN_OPERATORS = 3
"""Custom operators of a model that a message names."""


GENERATORS = (
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("Bernoulli", "Multinomial"),
)
"""The operators of ONNX whose results are random."""


def has_generator(model: onnx.ModelProto) -> bool:
    """Returns whether a node may draw random numbers: one of these, or a dropout in training."""
    return any(
        node.op_type in GENERATORS or (node.op_type == "Dropout" and any(node.input[2:]))
        for node in nodes_of(model)
    )


def custom_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the operators that a library must register, like `ai.onnx.contrib:Inverse`: neither
    ONNX nor ONNX Runtime has their domain, and the model does not define them."""
    own = {(function.domain, function.name) for function in model.functions}
    operators = {(node.domain, node.op_type) for node in nodes_of(model) if _is_custom(node.domain)}
    return tuple(sorted(f"{domain}:{name}" for domain, name in operators - own))


def _is_custom(domain: str) -> bool:
    is_known = not domain or domain.startswith(_KNOWN_DOMAINS)
    return domain in _OF_EXTENSIONS or not is_known


# The digest of an ONNX graph without its weights, computed without compiling.

_INTEGERS = {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL}
_MAX_SHAPE = 64
"""Integer tensors up to this size are shapes, axes and indices: structure, not weights."""

Digests = Mapping[str, str]
"""The digests of data files, by their names in the model."""
_NO_DATA: Digests = {}


def graph_digest(model: bytes, data: Digests = _NO_DATA) -> str:
    """Returns the SHA-256 of the graph without weights: equal for two models that differ only in
    those.

    A tensor that decides a shape, a count or a condition is no weight. Names of nodes and tensors
    count; documentation and the producer do not. Raises ModelError.
    """
    proto = _parse(model)
    for field in ("producer_name", "producer_version", "doc_string", "metadata_props"):
        proto.ClearField(field)
    deciding = deciding_values(proto)
    try:
        for tensor, name in tensors_of(proto):
            _forget_weights(tensor, data, is_deciding=name in deciding)
        for node in filter(has_fitted_numbers, nodes_of(proto)):
            forget_fitted_numbers(node)
        for documented in (*graphs_of(proto), *nodes_of(proto), *proto.functions):
            documented.ClearField("doc_string")
        return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()
    except (ValueError, TypeError, EncodeError) as error:
        raise ModelError(f"not a valid ONNX file: {str(error)[:300]}") from error


def _parse(model: bytes) -> onnx.ModelProto:
    proto = parsed_model(model)
    if not proto.graph.node and not proto.graph.output:
        raise ModelError("an ONNX file without a graph")
    return proto


def _forget_weights(tensor: TensorProto, data: Digests, *, is_deciding: bool) -> None:
    is_small = math.prod(tensor.dims) <= _MAX_SHAPE
    is_kept = is_deciding or (is_small and tensor.data_type in _INTEGERS)
    if is_kept and not tensor.external_data:
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))  # one encoding for all
        return
    tensor_without_data = TensorProto(
        name=tensor.name, data_type=tensor.data_type, dims=tensor.dims
    )
    if is_kept:  # its numbers are in a data file: any change of it may change them
        where = {entry.key: entry.value for entry in tensor.external_data}
        tensor_without_data.raw_data = (
            f"{sorted(where.items())} {data.get(where.get('location', ''))}".encode()
        )
    tensor.CopyFrom(tensor_without_data)


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yields the graph, and those inside its nodes and inside functions."""
    yield model.graph
    for node in nodes_of(model):
        yield from bodies_of(node)


def tensors_of(model: onnx.ModelProto) -> Iterator[tuple[TensorProto, str]]:
    """Yields the tensors that may be weights, with the graph's name of the value. Tensors elsewhere
    are kept and count."""
    for graph in graphs_of(model):
        yield from ((tensor, tensor.name) for tensor in graph.initializer)
        for sparse in graph.sparse_initializer:
            yield sparse.values, sparse.values.name
            yield sparse.indices, sparse.values.name
    for node in nodes_of(model):
        if has_fitted_numbers(node):
            continue
        name = node.output[0] if node.output else ""
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t, name
            yield from ((tensor, name) for tensor in attribute.tensors)


# The outline of an ONNX file: its inputs, and its number of each operator and weight.


def outline_of(model: bytes) -> ModelOutline:
    """Returns the outline. Raises ModelError if the file cannot be read."""
    digest = graph_digest(model)
    proto = onnx.ModelProto.FromString(model)
    graph = proto.graph
    parts = Counter(node.op_type for node in graph.node)
    parts.update(str(list(tensor.dims)) for tensor in graph.initializer)
    return ModelOutline(
        graph_digest=digest,
        inputs=graph_inputs(graph),
        parts=dict(parts),
        seeded=_seeded_names(proto),
        choosing=chosen_by_inputs(proto, custom_operators(proto)),
        layers=_layers(proto),
    )


OPERATOR, WEIGHTS = "operator", "weights"
"""The facts of a layer beside its attributes."""
_MAX_LAYERS, _MAX_RANK = 20_000, 64
_MAX_FACT, _SHOWN_OF_LONG, _SHOWN_VALUES = 80, 60, 8


def _layers(model: onnx.ModelProto) -> dict[str, dict[str, str]]:
    """Returns the layers by name (or first output), those in bodies and functions behind the name
    of what has them, and none if there are more than anybody would compare by eye."""
    if sum(1 for _ in itertools.islice(nodes_of(model), _MAX_LAYERS + 1)) > _MAX_LAYERS:
        return {}
    layers: dict[str, dict[str, str]] = {}
    counts: Counter[str] = Counter()
    for name, facts in _each_layer(model):
        key = name
        while key in layers:
            counts[name] += 1
            key = f"{name} ({counts[name] + 1})"
        layers[key] = facts
    return layers


_Shapes = ChainMap[str, str]


def _each_layer(model: onnx.ModelProto) -> Iterator[tuple[str, dict[str, str]]]:
    yield from _in_graph(model.graph.node, model.graph.initializer, "", _Shapes())
    for function in model.functions:
        yield from _in_graph(function.node, (), f"function {function.name}: ", _Shapes())


def _in_graph(
    nodes: Sequence[onnx.NodeProto], initializers: Sequence[TensorProto], place: str, outer: _Shapes
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields each layer of a graph and of the bodies inside it, which see the weights of `outer`
    graphs."""
    shapes = outer.new_child({tensor.name: _tensor_text(tensor) for tensor in initializers})
    for node in nodes:
        constants = (each.t for each in node.attribute if node.op_type == "Constant")
        shapes |= {name: _tensor_text(constant) for constant in constants for name in node.output}
        own = node.name or next(iter(node.output), "")
        name = f"{place}{_shorten(own, own.encode())}"
        yield name, _facts(node, shapes)
        for body in bodies_of(node):
            yield from _in_graph(body.node, body.initializer, f"{name}: ", shapes)


def _tensor_text(tensor: TensorProto) -> str:
    """Returns the shape of a tensor, such as `16x3x1x1`, and the values of a short list of
    integers, which say how others are shaped."""
    shape = "x".join(map(str, tensor.dims[:_MAX_RANK]))
    if len(tensor.dims) != 1 or tensor.data_type != TensorProto.INT64:
        return shape
    count = tensor.dims[0]
    if not 0 < count <= _SHOWN_VALUES:
        return shape
    values: Sequence[int] = tensor.int64_data[: _SHOWN_VALUES + 1]
    if not values and len(tensor.raw_data) == 8 * count:
        values = struct.unpack(f"<{count}q", tensor.raw_data)
    return f"[{','.join(map(str, values))}]" if len(values) == count else shape


def _facts(node: onnx.NodeProto, shapes: Mapping[str, str]) -> dict[str, str]:
    weights = " and ".join(shapes[name] for name in node.input if shapes.get(name))
    facts = {
        OPERATOR: operator_of(node)[:_MAX_FACT],
        WEIGHTS: _shorten(weights, weights.encode()),
        **{attribute.name: _attribute_text(attribute) for attribute in node.attribute},
    }
    return {name: text for name, text in facts.items() if text}


def _shorten(text: str, whole: bytes) -> str:
    """Returns a long text with a digest of all that it stands for, so that what differs behind its
    end is seen."""
    if len(text) <= _MAX_FACT:
        return text
    return f"{text[:_SHOWN_OF_LONG]}… (sha256 {hashlib.sha256(whole).hexdigest()[:8]})"


def _attribute_text(attribute: onnx.AttributeProto) -> str:
    """Returns numbers and words as text, the shape of a tensor, nothing for graphs. Of a list only
    what is shown is made to text: one of a few megabytes has millions of numbers."""
    more = _MAX_FACT + 1
    more_bytes = 4 * more
    match attribute.type:
        case onnx.AttributeProto.INT:
            text = str(attribute.i)
        case onnx.AttributeProto.FLOAT:
            text = f"{attribute.f:g}"
        case onnx.AttributeProto.STRING:
            text = attribute.s[:more_bytes].decode(errors="replace")
        case onnx.AttributeProto.INTS:
            text = ",".join(map(str, attribute.ints[:more]))
        case onnx.AttributeProto.FLOATS:
            text = ",".join(f"{number:g}" for number in attribute.floats[:more])
        case onnx.AttributeProto.STRINGS:
            words = (
                string[:more_bytes].decode(errors="replace") for string in attribute.strings[:more]
            )
            text = ",".join(words)
        case onnx.AttributeProto.TENSOR:
            text = _tensor_text(attribute.t)
        case _:
            text = ""
    text = attribute.ref_attr_name or text
    is_long = len(text) > _MAX_FACT
    return _shorten(text, attribute.SerializeToString(deterministic=True)) if is_long else text


def _seeded_names(model: onnx.ModelProto) -> tuple[str, ...]:
    """Returns each random operator that has a seed, with it: `RandomUniform 1.5`. A seed that a
    function gets from its callers is any of theirs: `RandomUniform 1.5 or 2.0`."""
    nodes = list(nodes_of(model))
    seeded = [
        (node.op_type, each) for node in nodes for each in node.attribute if each.name == "seed"
    ]
    defaults = (each for function in model.functions for each in function.attribute_proto)
    names = {seed.ref_attr_name for _, seed in seeded} - {""}
    seeds_by_name = {name: dict[str, None]() for name in names}
    for each in (*defaults, *(each for node in nodes for each in node.attribute)):
        if each.name in seeds_by_name:
            seeds_by_name[each.name][str(each.f or each.i)] = None
    texts = {name: " or ".join(seeds) for name, seeds in seeds_by_name.items()}
    texts = {name: _shorten(text, text.encode()) for name, text in texts.items()}
    return tuple(
        sorted(
            f"{kind} {texts.get(seed.ref_attr_name) or seed.f or seed.i}" for kind, seed in seeded
        )
    )


# The weights of trees, linear models, scalers and support vectors, which are attributes of one
# node. They are only added and multiplied, so other values take the same time. All else is
# structure: the thresholds of a tree decide which branches are taken, and how deep.

_DOMAIN = "ai.onnx.ml"
_OF_TREES = frozenset({"base_values", "class_weights", "leaf_weights", "target_weights"})
_OF_LINES = frozenset({"coefficients", "intercepts"})
_OF_VECTORS = frozenset({"coefficients", "prob_a", "prob_b", "rho", "support_vectors"})
_FITTED: Mapping[str, frozenset[str]] = {
    "LinearClassifier": _OF_LINES,
    "LinearRegressor": _OF_LINES,
    "SVMClassifier": _OF_VECTORS,
    "SVMRegressor": _OF_VECTORS,
    "Scaler": frozenset({"offset", "scale"}),
    "TreeEnsemble": _OF_TREES,
    "TreeEnsembleClassifier": _OF_TREES,
    "TreeEnsembleRegressor": _OF_TREES,
}
_AS_TENSOR = "_as_tensor"


def has_fitted_numbers(node: onnx.NodeProto) -> bool:
    return node.domain == _DOMAIN and node.op_type in _FITTED


def forget_fitted_numbers(node: onnx.NodeProto) -> None:
    """Replaces fitted numbers by their count and type."""
    for attribute in node.attribute:
        if attribute.name.removesuffix(_AS_TENSOR) not in _FITTED[node.op_type]:
            continue
        count = len(attribute.floats)
        del attribute.floats[:]
        attribute.floats.extend([0.0] * count)
        if attribute.HasField("t"):
            kind, dims = attribute.t.data_type, list(attribute.t.dims)
            attribute.t.CopyFrom(onnx.TensorProto(data_type=kind, dims=dims))
