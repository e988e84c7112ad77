"""Sizes for all open dimensions of a model that its graph accepts, as far as inference can tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
import onnx
from google.protobuf.message import DecodeError, EncodeError

from tunegate.artifacts.outlines import ModelInput
from tunegate.edges.models.input_forms import made_of
from tunegate.edges.models.model_inputs import graph_inputs, real_inputs
from tunegate.edges.models.sizes.demanded_sizes import (
    Place,
    demanded_ranks,
    demanded_sizes,
)
from tunegate.edges.models.sizes.likely_size import LikelySize, is_for_sound, likely_size
from tunegate.edges.models.without_weights import without_weights
from tunegate.input_shapes import is_symbol
from tunegate.symbol_sums import computed_size

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
