"""Sizes to try for a model's open dimensions: those its weights demand, then likely ones, in the
order a person would send them. Pure; `size_trials.py` asks ONNX Runtime."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice

import msgspec
import onnx
from google.protobuf.message import DecodeError, EncodeError

from tunegate.artifacts.changes import ModelInput
from tunegate.models.kernel_digest import without_weights
from tunegate.models.likely_sizes import LikelySize, likely_size, model_kind, of_protein
from tunegate.models.model_inputs import graph_inputs, kind_of_input, real_inputs
from tunegate.models.size_evidence import NO_EVIDENCE, Evidence
from tunegate.review.input_shapes import computed_size, is_symbol

# Sizes that a graph demands of an open input: the nodes that read it fix its width and rank.

_UNARY = frozenset({"Identity", "Cast", "Relu", "Sigmoid", "Tanh", "Dropout", "Clip", "Neg", "Abs"})
_CHANNELS_IN_WEIGHT = frozenset({"Conv", "ConvInteger"})
_CHANNELS_FIRST = frozenset({"ConvTranspose", "BatchNormalization", "InstanceNormalization"})
_WIDTH_LAST = frozenset({"LSTM", "GRU", "RNN", "LayerNormalization"})
_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "Gemm"})
_WINDOWS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalMaxPool", "SpaceToDepth", "DepthToSpace"})
_IMAGE_INPUT_RANK, _MATRIX_INPUT_RANK, _SEQUENCE_RANK = 4, 2, 3
_Shapes = Mapping[str, tuple[int, ...]]
Place = tuple[str, int]


def demanded_sizes(graph: onnx.GraphProto) -> dict[Place, int]:
    """Returns sizes by (input name, axis); a negative axis counts from the end."""
    weights = _weights(graph)
    sizes: dict[Place, int] = {}
    for node, source in _readers(graph, weights):
        for axis, size in _demands(node, weights):
            sizes.setdefault((source, axis), size)
    return sizes


def demanded_ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns the rank of inputs, by the nodes that read them, without inputs that have no such
    node."""
    weights = _weights(graph)
    ranks: dict[str, int] = {}
    for node, source in _readers(graph, weights):
        if rank := _rank(node, weights):
            ranks.setdefault(source, rank)
    return ranks


def _weights(graph: onnx.GraphProto) -> _Shapes:
    return {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _readers(graph: onnx.GraphProto, weights: _Shapes) -> Iterator[tuple[onnx.NodeProto, str]]:
    """Yields each node whose first operand is an input, also behind operators that keep its
    shape."""
    origins = {value.name: value.name for value in graph.input if value.name not in weights}
    for node in graph.node:
        source = origins.get(node.input[0]) if node.input else None
        if source is None:
            continue
        if node.op_type in _UNARY:
            origins[node.output[0]] = source
        yield node, source


def _rank(node: onnx.NodeProto, weights: _Shapes) -> int:
    shape = weights.get(node.input[1], ()) if len(node.input) > 1 else ()
    lists = {each.name: len(each.ints) for each in node.attribute}
    if node.op_type == "Transpose":
        return lists.get("perm", 0)
    if node.op_type in _WINDOWS:
        return 2 + lists.get("kernel_shape", 0)
    if node.op_type in _CHANNELS_IN_WEIGHT | {"ConvTranspose"}:
        return len(shape)
    if node.op_type in _GLOBAL | {"BatchNormalization", "InstanceNormalization"}:
        return _IMAGE_INPUT_RANK
    if node.op_type in {"LSTM", "GRU", "RNN"}:
        return _SEQUENCE_RANK
    return (
        _MATRIX_INPUT_RANK if node.op_type in _PRODUCTS and len(shape) == _MATRIX_INPUT_RANK else 0
    )


def _demands(node: onnx.NodeProto, weights: _Shapes) -> Iterator[tuple[int, int]]:
    """Yields axes of the first operand, with their sizes."""
    shape = weights.get(node.input[1]) if len(node.input) > 1 else None
    if not shape:
        return
    integers = {each.name: each.i for each in node.attribute}
    if node.op_type in _CHANNELS_IN_WEIGHT:
        yield 1, shape[1] * (integers.get("group") or 1)
    elif node.op_type in _CHANNELS_FIRST:
        yield 1, shape[0]
    elif node.op_type in _WIDTH_LAST:
        yield -1, shape[-1]
    elif node.op_type in _PRODUCTS and len(shape) > 1:
        yield -1, shape[-1] if integers.get("transB") else shape[-2]


# Sizes for all open dimensions that the graph accepts, as far as inference can tell.

_MAX_CHECKED_BYTES = 300 * 10**6
_MAX_TRIES = 60
_MAX_NUMBERS = 4096
"""A tensor with more numbers is a weight: no shape depends on it."""
_INTEGERS = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}
_Dimension = onnx.TensorShapeProto.Dimension


class GuessedSize(msgspec.Struct, frozen=True):
    """The size of one open dimension, and where it comes from, in a few words. It `is_sum` if it
    follows from other sizes. Sizes of one `kind` change together. It `is_said` if the file, or one
    beside it, states it."""

    input: str
    axis: int
    symbol: str
    size: int
    why: str
    is_sum: bool = False
    kind: str = ""
    is_said: bool = False


Guesses = tuple[GuessedSize, ...]


def guessed_sizes(model: onnx.ModelProto, evidence: Evidence = NO_EVIDENCE) -> Guesses:
    """Returns the likeliest sizes, or the first others that shape inference does not reject."""
    return next(size_candidates(model, evidence))


def likeliest_keys(
    model: onnx.ModelProto, open_places: Collection[Place], before: Mapping[Place, int]
) -> str:
    """Returns the keys of an entry that give the open dimensions the sizes that they had `before`,
    else their likeliest ones, by names, places and weights alone: nothing is run or inferred. ''
    where none is known."""
    likely, symbols = _likely_places(model, NO_EVIDENCE)
    first = _guesses(likely, dict.fromkeys((each.kind for each in likely.values()), 0), symbols)
    guesses = [
        msgspec.structs.replace(each, size=before.get((each.input, each.axis), each.size))
        for each in first
    ]
    free = [each for each in guesses if (each.input, each.axis) in open_places]
    dims = {each.symbol: each.size for each in free if is_symbol(each.symbol) and not each.is_sum}
    unnamed = {each.input for each in free if not is_symbol(each.symbol)}
    sizes_of: dict[str, dict[int, int]] = defaultdict(dict)
    for each in guesses:
        sizes_of[each.input][each.axis] = each.size
    shapes = {
        value.name: [size if size is not None else sizes[axis] for axis, size in enumerate(axes)]
        for value in graph_inputs(model.graph)
        if value.name in unnamed
        for sizes in [sizes_of[value.name]]
        for axes in [value.dimensions or (None,) * len(sizes)]
    }
    keys = (("dims", dims), ("inputs", shapes))
    return ", ".join(
        f"{key}: {json.dumps(sizes, ensure_ascii=False)}" for key, sizes in keys if sizes
    )


def size_candidates(model: onnx.ModelProto, evidence: Evidence = NO_EVIDENCE) -> Iterator[Guesses]:
    """Yields sizes to try, the likeliest first, without those that shape inference rejects; the
    likeliest alone if it rejects all."""
    likely, symbols = _likely_places(model, evidence)
    lengths = {each.kind: len(each.sizes) for each in likely.values()}
    usual = dict.fromkeys(lengths, 0)
    if model.ByteSize() >= _MAX_CHECKED_BYTES or all(n == 1 for n in lengths.values()):
        yield _guesses(likely, usual, symbols)
        return
    light = without_weights(model, _MAX_NUMBERS)
    is_any = False
    for chosen in (usual, *_others(lengths)):
        if _fits(light, _sizes(likely, chosen, symbols)):
            is_any = True
            yield _guesses(likely, chosen, symbols)
    if not is_any:
        yield _guesses(likely, usual, symbols)


def _likely_places(model: onnx.ModelProto, evidence: Evidence) -> tuple[_Places, dict[Place, str]]:
    """Returns the likely sizes of each open dimension, and its symbol."""
    inputs = _integer_inputs(_fill_ranks(graph_inputs(model.graph), model.graph), model.graph)
    likely = _likely_sizes(inputs, model.graph, evidence)
    return likely, _symbols(inputs, likely)


def _guesses(likely: _Places, choice: _ChoiceByKind, symbols: Mapping[Place, str]) -> Guesses:
    sums = _sums(likely, choice, symbols)
    return tuple(
        GuessedSize(
            *place,
            symbols[place],
            size,
            likely[place].reason(size),
            is_sum=place in sums,
            kind=likely[place].kind,
            is_said=bool(likely[place].said) and size == likely[place].sizes[0],
        )
        for place, size in _sizes(likely, choice, symbols).items()
    )


def _fill_ranks(inputs: Sequence[ModelInput], graph: onnx.GraphProto) -> tuple[ModelInput, ...]:
    """Returns the inputs; one of unknown rank gets the rank that its readers demand."""
    ranks = demanded_ranks(graph) if not all(value.is_ranked for value in inputs) else {}
    return tuple(
        msgspec.structs.replace(value, dimensions=(None,) * ranks[value.name])
        if not value.is_ranked and value.name in ranks
        else value
        for value in inputs
    )


def _integer_inputs(inputs: Sequence[ModelInput], graph: onnx.GraphProto) -> tuple[ModelInput, ...]:
    """Returns the inputs; floats that the graph casts to integers become integers: they are tokens
    or characters, no signal."""
    looked_up = {
        source
        for node, source in _readers(graph, _weights(graph))
        if node.op_type == "Cast" and any(each.i in _INTEGERS for each in node.attribute)
    }
    return tuple(
        msgspec.structs.replace(value, dtype="int64") if value.name in looked_up else value
        for value in inputs
    )


_Places = dict[Place, LikelySize]
_ChoiceByKind = Mapping[str, int]
"""The index of the chosen size in the list of each kind."""


def _likely_sizes(
    inputs: Sequence[ModelInput], graph: onnx.GraphProto, evidence: Evidence
) -> _Places:
    """Returns one guess per open dimension. A size demanded in one place holds for its symbol
    everywhere."""
    demands = demanded_sizes(graph)
    likely: _Places = {}
    by_symbol: dict[str, LikelySize] = {}
    kind = model_kind(inputs, evidence)
    for value in inputs:
        rank = len(value.dimensions)
        for axis in (axis for axis, size in enumerate(value.dimensions) if size is None):
            size = demands.get((value.name, axis)) or demands.get((value.name, axis - rank))
            size_of_axis = likely_size(value, axis, kind)
            if size is not None:
                size_of_axis = LikelySize((size,), "its weights demand it", f"weights {size}")
                by_symbol[value.symbol(axis)] = size_of_axis
            likely[value.name, axis] = size_of_axis
            by_symbol.setdefault(value.symbol(axis), size_of_axis)
    symbols = _symbols(inputs, likely)
    found_for = {
        place: by_symbol[symbols[place]] if is_symbol(symbols[place]) else size_of_axis
        for place, size_of_axis in likely.items()
    }
    return of_protein(found_for)


def _symbols(inputs: Sequence[ModelInput], places: Iterable[Place]) -> dict[Place, str]:
    input_of = {value.name: value for value in inputs}
    return {(name, axis): input_of[name].symbol(axis) for name, axis in places}


def _sizes(
    likely: _Places, choice: _ChoiceByKind, symbols: Mapping[Place, str]
) -> dict[Place, int]:
    plain = {place: _chosen_size(each, choice) for place, each in likely.items()}
    return {**plain, **_sums(likely, choice, symbols)}


def _sums(likely: _Places, choice: _ChoiceByKind, symbols: Mapping[Place, str]) -> dict[Place, int]:
    """Returns the sizes of dimensions that are sums of others."""
    size_of = {symbols[place]: _chosen_size(each, choice) for place, each in likely.items()}
    sums = ((place, computed_size(symbols[place], size_of)) for place in likely)
    return {place: size for place, size in sums if size}


def _chosen_size(likely: LikelySize, choice: _ChoiceByKind) -> int:
    return likely.sizes[min(choice[likely.kind], len(likely.sizes) - 1)]


def _others(lengths: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yields guesses to try: one kind at a time first, then all together, index by index."""
    usual = dict.fromkeys(lengths, 0)
    each_alone = (usual | {kind: at} for kind, many in lengths.items() for at in range(1, many))
    longest = max(lengths.values(), default=0) if len(lengths) > 1 else 0
    together = (dict.fromkeys(lengths, at) for at in range(1, longest))
    yield from islice(chain(each_alone, together), _MAX_TRIES)


def _fits(model: onnx.ModelProto, sizes: Mapping[Place, int]) -> bool:
    """Returns whether shape inference finds no contradiction; what it cannot infer rejects
    nothing."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    ranks = Counter(name for name, _ in sizes)
    for value in real_inputs(fixed.graph):
        shape = kind_of_input(value).tensor.shape
        shape.dim.extend(_Dimension() for _ in range(ranks[value.name] if not shape.dim else 0))
        for axis, dim in enumerate(shape.dim):
            if (value.name, axis) in sizes:
                dim.CopyFrom(_Dimension(dim_value=sizes[value.name, axis]))
    with suppress(DecodeError, EncodeError, ValueError, RuntimeError):
        try:
            onnx.shape_inference.infer_shapes(fixed, strict_mode=True, data_prop=True)
        except onnx.shape_inference.InferenceError as error:
            return not _is_contradiction(str(error))
    return True


def _is_contradiction(text: str) -> bool:
    return any(word in text.casefold() for word in ("incompatible", "mismatch", "inferred shape"))
