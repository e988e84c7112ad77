"""A likely size of an open dimension, by its name and by its place in the input. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tunegate.artifacts.outlines import ModelInput

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
