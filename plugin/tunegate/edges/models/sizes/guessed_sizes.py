"""Sizes for all open dimensions of a model that its graph accepts, as far as inference can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import onnx
from google.protobuf.message import DecodeError, EncodeError

from tunegate.artifacts.outlines import ModelInput
from tunegate.edges.models.model_inputs import graph_inputs, real_inputs
from tunegate.edges.models.sizes.demanded_sizes import demanded_sizes
from tunegate.edges.models.sizes.likely_size import LikelySize, is_for_sound, likely_size
from tunegate.edges.models.without_weights import without_weights
from tunegate.input_shapes import is_symbol

_MAX_CHECKED_BYTES = 300 * 10**6
_MAX_TRIES = 40
_MAX_NUMBERS = 4096
"""More numbers in a tensor are weights, on which no shape depends."""
_Dimension = onnx.TensorShapeProto.Dimension


class GuessedSize(msgspec.Struct, frozen=True):
    """The size of one open dimension, and where it is from, in a few words."""

    input: str
    axis: int
    symbol: str
    size: int
    why: str


def guessed_sizes(model: onnx.ModelProto) -> tuple[GuessedSize, ...]:
    """The likeliest sizes, or the first others that shape inference does not refuse."""
    inputs = graph_inputs(model.graph)
    likely = _with_demands(inputs, model.graph)
    kinds = {each.kind: each.sizes for each in likely.values()}
    chosen = {kind: sizes[0] for kind, sizes in kinds.items()}
    is_checked = model.ByteSize() < _MAX_CHECKED_BYTES and any(len(s) > 1 for s in kinds.values())
    light = without_weights(model, _MAX_NUMBERS) if is_checked else model
    if is_checked and not _fits(light, _sizes(likely, chosen)):
        others = (each for each in _others(kinds) if _fits(light, _sizes(likely, each)))
        chosen = next(others, chosen)
    return tuple(
        GuessedSize(name, axis, _symbol(inputs, name, axis), chosen[each.kind], each.why)
        for (name, axis), each in likely.items()
    )


_Places = dict[tuple[str, int], LikelySize]


def _with_demands(inputs: Sequence[ModelInput], graph: onnx.GraphProto) -> _Places:
    """One guess for each open dimension. What one place demands, its symbol demands everywhere."""
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


def _sizes(likely: _Places, chosen: dict[str, int]) -> dict[tuple[str, int], int]:
    return {place: chosen[each.kind] for place, each in likely.items()}


def _others(kinds: dict[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """One kind at a time first, then all together by their places."""
    usual = {kind: sizes[0] for kind, sizes in kinds.items()}
    tries = [usual | {kind: size} for kind, sizes in kinds.items() for size in sizes[1:]]
    longest = max(map(len, kinds.values()), default=0)
    tries += [
        {kind: sizes[min(at, len(sizes) - 1)] for kind, sizes in kinds.items()}
        for at in range(1, longest)
    ]
    yield from tries[:_MAX_TRIES]


def _fits(model: onnx.ModelProto, sizes: dict[tuple[str, int], int]) -> bool:
    """Whether shape inference finds no contradiction; what it cannot do refuses nothing."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in real_inputs(fixed.graph):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
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
