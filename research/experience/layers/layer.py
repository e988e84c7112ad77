"""A layer of a real model, apart from it: its operator, the sizes that occur together, and what
follows it. Scaled, its sizes still belong together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

LayerKind = Literal[
    "convolution",
    "pointwise",
    "grouped",
    "depthwise",
    "product",
    "batched-product",
]
Sizes = tuple[int, ...]
Attribute = int | float | str | tuple[int, ...]

_IMAGE_CHANNELS = 4
"""An image has so many channels at most, however wide the network is."""
_FEATURES = 2
"""The dimensions before the sizes of an image: batch and channels."""


class ModelLayer(msgspec.Struct, frozen=True, kw_only=True):
    """`operands` are the shapes of its inputs, of which `constants` are weights. `follows` are
    element-wise operators behind it; `bias` and `residual` are additions of weights for each
    channel, and of another activation."""

    operator: str
    kind: LayerKind
    operands: tuple[Sizes, ...]
    constants: tuple[int, ...] = ()
    attributes: Mapping[str, Attribute] = {}
    follows: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Equal for equal layers, in whichever model they stand."""
        encoded = msgspec.json.encode(self, order="deterministic")
        return hashlib.sha256(encoded).hexdigest()[:16]

    @property
    def group(self) -> int:
        group = self.attributes.get("group", 1)
        return group if isinstance(group, int) else 1

    @property
    def operations(self) -> float:
        """Multiplications and additions of one call, as if borders were padded."""
        first, second = self.operands[0], self.operands[1]
        if self.operator != "Conv":
            return 2.0 * math.prod(first) * second[0 if self.attributes.get("transB") else -1]
        strides = self.attributes.get("strides", ())
        strides = strides if isinstance(strides, tuple) else ()
        steps = zip(first[_FEATURES:], (*strides, *(1 for _ in first)), strict=False)
        positions = math.prod(math.ceil(size / max(1, stride)) for size, stride in steps)
        return 2.0 * first[0] * positions * math.prod(second)

    @property
    def numbers(self) -> int:
        """Those of all operands together."""
        return sum(math.prod(shape) for shape in self.operands)

    @property
    def name(self) -> str:
        """The sizes, for people: nothing of the model that it is from."""
        sizes = " ".join("x".join(map(str, shape)) for shape in self.operands[:2])
        group = f" in {self.group} groups" if self.kind == "grouped" else ""
        return f"{self.kind} {sizes}{group}"


class Scale(NamedTuple):
    """Factors of the batch, of all channels and features, and of the sizes of images and
    sequences."""

    batch: float = 1.0
    channels: float = 1.0
    extents: float = 1.0


def scaled(layer: ModelLayer, scale: Scale) -> ModelLayer:
    """The layer as it would be in a wider model, on larger inputs, or in larger batches."""
    if layer.operator == "Conv":
        return _convolution(layer, scale)
    return _product(layer, scale)


def _convolution(layer: ModelLayer, scale: Scale) -> ModelLayer:
    (batch, channels, *sizes), weights = layer.operands[0], layer.operands[1]
    group, outputs = layer.group, weights[0]
    if layer.kind == "depthwise":
        new_group = new_channels = _times(channels, scale.channels)
        new_outputs = new_channels * (outputs // channels)
    else:
        new_group = group
        is_image = channels <= _IMAGE_CHANNELS
        wider = 1.0 if is_image else scale.channels
        new_channels = group * _times(channels // group, wider)
        new_outputs = group * _times(outputs // group, scale.channels)
    image = (_times(batch, scale.batch), new_channels, *_larger(sizes, scale, weights[2:]))
    kernel = (new_outputs, new_channels // new_group, *weights[2:])
    biases = ((new_outputs,),) * (len(layer.operands) - _FEATURES)
    attributes = {**layer.attributes, "group": new_group}
    return msgspec.structs.replace(layer, operands=(image, kernel, *biases), attributes=attributes)


def _product(layer: ModelLayer, scale: Scale) -> ModelLayer:
    """Rows scale with the sequence, and so does each other dimension of an activation that is as
    long as it: scores of attention have two of them."""
    left, right = layer.operands[0], layer.operands[1]
    rows = left[-2]
    is_sequence = 1 not in layer.constants

    def inner(size: int) -> int:
        as_rows = is_sequence and size == rows
        return _times(size, scale.extents if as_rows else scale.channels)

    new_left = (*_batches(left[:-2], scale), _times(rows, scale.extents), inner(left[-1]))
    batches = right[:-2] if 1 in layer.constants else _batches(right[:-2], scale)
    new_right = (*batches, inner(right[-2]), inner(right[-1]))
    biases = tuple((inner(shape[-1]),) for shape in layer.operands[2:])
    return msgspec.structs.replace(layer, operands=(new_left, new_right, *biases))


def _batches(sizes: Sizes, scale: Scale) -> Sizes:
    """The first of them is the batch; heads stay."""
    return tuple(_times(n, scale.batch) if i == 0 else n for i, n in enumerate(sizes))


def _larger(sizes: Sizes | list[int], scale: Scale, window: Sizes) -> Sizes:
    """No smaller than the window that moves over them."""
    least = (*window, *(1 for _ in sizes))
    return tuple(
        max(_times(size, scale.extents), most) for size, most in zip(sizes, least, strict=False)
    )


def _times(size: int, factor: float) -> int:
    return max(1, math.floor(size * factor + 0.5))
