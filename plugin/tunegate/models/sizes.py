"""A likely size of an open dimension, by its name and by its place in the input. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import onnx
from google.protobuf.message import DecodeError, EncodeError

from tunegate.artifacts.changes import ModelInput
from tunegate.models.kernel_digest import without_weights
from tunegate.models.model_inputs import graph_inputs, made_of, real_inputs
from tunegate.review.input_shapes import computed_size, is_symbol

IMAGE_SIDES = (224, 256, 320, 640, 512, 128, 64, 32)
SAMPLES = (512, 576, 1024, 1600, 16000)
LENGTHS = (128, 512, 64, 256, 32, 16, 8, 1, 1024, 2048, 4096, 16000)
_GENERATED = r"(.*\bunk|(.*\.)?dynamic_?dimension|dim|d|s|u|.*_dim|.*_dynamic_axes)[._]*\d+"
_SOUND = r"audio|wave|signal|speech|pcm"
_SAMPLE_RATE = r"sr|fs|sampl(e|ing)_?rate"
_IMAGE_RANK = 4
_MATRIX_RANK = 2
_COLORS = frozenset({1, 3, 4})


class LikelySize(NamedTuple):
    """The sizes to try, the likeliest first, and why; they are of one `kind`, so that dimensions of
    a kind are tried together."""

    sizes: tuple[int, ...]
    why: str
    kind: str


_BY_NAME: tuple[tuple[str, LikelySize], ...] = (
    (r"past|cache", LikelySize((16, 1), "what is cached", "past")),
    (r"batch|bsz|bs|n|b", LikelySize((1,), "a batch", "batch")),
    (r"num_?graphs?|graphs?", LikelySize((1,), "graphs", "batch")),
    (r"num_?nodes?|nodes?|vertices", LikelySize((16,), "nodes of a graph", "nodes")),
    (r"num_?edges?|edges?", LikelySize((32,), "edges of a graph", "edges")),
    (r"channels?|c", LikelySize((3, 1), "channels", "channels")),
    (r"height|width|h|w|img_?size|image_?size", LikelySize(IMAGE_SIDES, "an image", "image")),
    (r"samples|audio|waveform", LikelySize(SAMPLES, "samples of sound", "sound")),
    (
        r"seq|sequence|length|len|tokens?|time|timesteps?|frames?|steps?|t|s",
        LikelySize(LENGTHS, "a length", "length"),
    ),
)


def likely_size(value: ModelInput, axis: int, *, is_sound: bool = False) -> LikelySize:
    """The symbol's words count first, then the place of the dimension. In a model for sound a
    length is one of samples."""
    found = _likely(value, axis)
    if found.kind == "length" and (is_sound or re.search(_SOUND, value.name, re.IGNORECASE)):
        return LikelySize(SAMPLES, "samples of sound", "sound")
    return found


def is_for_sound(inputs: Sequence[ModelInput]) -> bool:
    """Returns whether the model has an input for a sample rate."""
    return any(re.fullmatch(_SAMPLE_RATE, value.name, re.IGNORECASE) for value in inputs)


def _likely(value: ModelInput, axis: int) -> LikelySize:
    words = _words(value.symbol(axis))
    for pattern, likely in _BY_NAME:
        if any(re.fullmatch(pattern, word) for word in words):
            return _narrowed(value, axis, likely)
    return _by_place(value, axis)


def is_generated(symbol: str) -> bool:
    """Returns whether an exporter numbered the symbol: in another model it means something else."""
    return re.fullmatch(_GENERATED, symbol, re.IGNORECASE) is not None


def _words(symbol: str) -> set[str]:
    if is_generated(symbol):
        return set()
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", symbol).casefold()
    return {spaced, *re.split(r"[\W_\d]+", spaced)} - {""}


def _by_place(value: ModelInput, axis: int) -> LikelySize:
    rank = len(value.dimensions)
    if axis == 0 or _is_state(value, axis):
        return LikelySize((1,), "the first dimension is a batch", "batch")
    if rank == _IMAGE_RANK:
        if axis == _channel_axis(value):
            return LikelySize((3, 1), "channels of an image", "channels")
        return _narrowed(value, axis, LikelySize(IMAGE_SIDES, "a side of an image", "image"))
    return LikelySize(LENGTHS, "a length", "length")


def _is_state(value: ModelInput, axis: int) -> bool:
    """Returns whether the axis is the batch of a recurrent state: (layers, batch, width)."""
    dims = value.dimensions
    is_named = re.search(r"state|hidden|h_?0|c_?0|h_?n|c_?n|memory", value.name, re.IGNORECASE)
    return axis == 1 and len(dims) == _MATRIX_RANK + 1 and bool(is_named)


def _channel_axis(value: ModelInput) -> int:
    return 3 if value.dimensions[3] in _COLORS and value.dimensions[1] not in _COLORS else 1


def _narrowed(value: ModelInput, axis: int, likely: LikelySize) -> LikelySize:
    """The open side of an image whose other side is fixed: a line of text where that is low."""
    if likely.kind != "image" or len(value.dimensions) != _IMAGE_RANK:
        return likely
    sides = {1, 2} if _channel_axis(value) == _IMAGE_RANK - 1 else {2, 3}
    fixed = [value.dimensions[side] for side in sides - {axis} if side != axis]
    side = fixed[0] if axis in sides and fixed else None
    if side is None:
        return likely
    lowest = 100
    first = 4 * side if side < lowest else side
    why = f"the other side is {side}"
    return LikelySize((first, *IMAGE_SIDES), why, f"image beside {side}")


# Sizes that a graph demands of an input that it leaves open: the nodes that read it decide its
# width and its rank.

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
    """Sizes by (name of the input, axis counted from the end where it is negative)."""
    weights = _weights(graph)
    found: dict[Place, int] = {}
    for node, source in _readers(graph, weights):
        for axis, size in _demands(node, weights):
            found.setdefault((source, axis), size)
    return found


def demanded_ranks(graph: onnx.GraphProto) -> dict[str, int]:
    """Returns the rank of inputs, by the nodes that read them; none for an input without such a
    node."""
    weights = _weights(graph)
    found: dict[str, int] = {}
    for node, source in _readers(graph, weights):
        if rank := _rank(node, weights):
            found.setdefault(source, rank)
    return found


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
    """Axes of the first operand, with their sizes."""
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


# Sizes for all open dimensions of a model that its graph accepts, as far as inference can tell.

_MAX_CHECKED_BYTES = 300 * 10**6
_MAX_TRIES = 40
_MAX_NUMBERS = 4096
"""More numbers in a tensor are weights, on which no shape depends."""
_Dimension = onnx.TensorShapeProto.Dimension


class GuessedSize(msgspec.Struct, frozen=True):
    """The size of one open dimension, and where it is from, in a few words. One that `is_sum`
    follows from the sizes of others."""

    input: str
    axis: int
    symbol: str
    size: int
    why: str
    is_sum: bool = False


def guessed_sizes(model: onnx.ModelProto) -> tuple[GuessedSize, ...]:
    """The likeliest sizes, or the first others that shape inference does not refuse."""
    inputs = _ranked(graph_inputs(model.graph), model.graph)
    likely = _with_demands(inputs, model.graph)
    symbols = {place: _symbol(inputs, *place) for place in likely}
    kinds = {each.kind: each.sizes for each in likely.values()}
    chosen = {kind: sizes[0] for kind, sizes in kinds.items()}
    is_checked = model.ByteSize() < _MAX_CHECKED_BYTES and any(len(s) > 1 for s in kinds.values())
    light = without_weights(model, _MAX_NUMBERS) if is_checked else model
    if is_checked and not _fits(light, _sizes(likely, chosen, symbols)):
        others = (each for each in _others(kinds) if _fits(light, _sizes(likely, each, symbols)))
        chosen = next(others, chosen)
    sums = _sums(likely, chosen, symbols)
    return tuple(
        GuessedSize(*place, symbols[place], size, likely[place].why, is_sum=place in sums)
        for place, size in _sizes(likely, chosen, symbols).items()
    )


def _ranked(inputs: Sequence[ModelInput], graph: onnx.GraphProto) -> tuple[ModelInput, ...]:
    """The inputs; one without a number of dimensions has that which its readers demand."""
    ranks = demanded_ranks(graph) if not all(value.is_ranked for value in inputs) else {}
    return tuple(
        msgspec.structs.replace(value, dimensions=(None,) * ranks[value.name])
        if not value.is_ranked and value.name in ranks
        else value
        for value in inputs
    )


_Places = dict[Place, LikelySize]
_Chosen = Mapping[str, int]


def _with_demands(inputs: Sequence[ModelInput], graph: onnx.GraphProto) -> _Places:
    """Returns one guess for each open dimension. What one place demands, its symbol demands
    everywhere."""
    demands = demanded_sizes(graph)
    likely: _Places = {}
    by_symbol: dict[str, LikelySize] = {}
    is_sound = is_for_sound(inputs)
    for value in inputs:
        rank = len(value.dimensions)
        for axis in (axis for axis, size in enumerate(value.dimensions) if size is None):
            size = demands.get((value.name, axis)) or demands.get((value.name, axis - rank))
            found = likely_size(value, axis, is_sound=is_sound)
            if size is not None:
                found = LikelySize((size,), "its weights demand it", f"weights {size}")
                by_symbol[value.symbol(axis)] = found
            likely[value.name, axis] = found
            by_symbol.setdefault(value.symbol(axis), found)
    symbols = {place: _symbol(inputs, *place) for place in likely}
    return {
        place: by_symbol[symbols[place]] if is_symbol(symbols[place]) else found
        for place, found in likely.items()
    }


def _symbol(inputs: Sequence[ModelInput], name: str, axis: int) -> str:
    return next(value.symbol(axis) for value in inputs if value.name == name)


def _sizes(likely: _Places, chosen: _Chosen, symbols: Mapping[Place, str]) -> dict[Place, int]:
    plain = {place: chosen[each.kind] for place, each in likely.items()}
    return {**plain, **_sums(likely, chosen, symbols)}


def _sums(likely: _Places, chosen: _Chosen, symbols: Mapping[Place, str]) -> dict[Place, int]:
    """The sizes of dimensions that are sums of others."""
    known = {symbols[place]: chosen[each.kind] for place, each in likely.items()}
    found = ((place, computed_size(symbols[place], known)) for place in likely)
    return {place: size for place, size in found if size}


def _others(kinds: dict[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """Yields guesses to try: one kind at a time first, then all together by their places."""
    usual = {kind: sizes[0] for kind, sizes in kinds.items()}
    tries = [usual | {kind: size} for kind, sizes in kinds.items() for size in sizes[1:]]
    longest = max(map(len, kinds.values()), default=0)
    tries += [
        {kind: sizes[min(at, len(sizes) - 1)] for kind, sizes in kinds.items()}
        for at in range(1, longest)
    ]
    yield from tries[:_MAX_TRIES]


def _fits(model: onnx.ModelProto, sizes: Mapping[Place, int]) -> bool:
    """Returns whether shape inference finds no contradiction; what it cannot do refuses nothing."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in real_inputs(fixed.graph):
        shape = made_of(value).tensor.shape
        rank = sum(name == value.name for name, _ in sizes)
        shape.dim.extend(_Dimension() for _ in range(rank if not shape.dim else 0))
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
