"""Converts poolings with all pads written out, by ONNX's rules. TVM rounds otherwise where it finds
the pads itself, and where a window goes beyond them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tvm

from tunegate.errors import UnsupportedModelError

_SAME = {b"SAME_UPPER", b"SAME_LOWER"}


class WindowAxis(NamedTuple):
    """The extent of an image along one axis, and the window that moves along it."""

    extent: int
    window: int
    stride: int

    def same(self, *, is_upper: bool) -> tuple[int, int]:
        """Returns the pads with which there is a window for every stride that begins."""
        windows = math.ceil(self.extent / self.stride)
        total = max((windows - 1) * self.stride + self.window - self.extent, 0)
        return (total // 2, -(-total // 2)) if is_upper else (-(-total // 2), total // 2)

    def whole(self, begin: int, end: int) -> tuple[int, int]:
        """Returns the pads with which the last window is whole where ceil_mode takes a part of one.
        A window that begins behind the image does not count."""
        steps = math.ceil((self.extent + begin + end - self.window) / self.stride)
        if steps * self.stride >= self.extent + begin:
            steps -= 1
        return begin, max(steps * self.stride + self.window - self.extent - begin, 0)


def pooling_converter(converter: Any) -> Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]:
    """Makes an operator of TVM's converter of a pooling. It refuses a window that is larger than
    its image, of which ONNX Runtime takes what there is, and positions as an output."""

    def convert(builder: Any, operands: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        if attributes["tvm_custom"]["num_outputs"] > 1:
            raise tvm.error.OpNotImplemented("its positions are an output")
        pads = _pads(list(_axes(operands[0], attributes)), attributes)
        if pads is None:
            return None
        options = {**attributes, "auto_pad": b"NOTSET", "ceil_mode": 0}
        if attributes.get("ceil_mode", 0) and attributes.get("auto_pad") not in _SAME:
            options["count_include_pad"] = 0  # there are none but those that make windows whole
        options["pads"] = tuple(ends[side] for side in (0, 1) for ends in pads)
        return converter.get_converter(1)(builder, operands, options, [])

    return convert


def _pads(
    axes: Sequence[WindowAxis], attributes: Mapping[str, Any]
) -> Sequence[tuple[int, int]] | None:
    """Returns the pads of each axis, None if TVM finds them: of a window that is cut and reaches
    into pads that count, it counts what is in the image and in them."""
    auto_pad, rank = attributes.get("auto_pad", b"NOTSET"), len(axes)
    if auto_pad in _SAME:
        if any(dilation != 1 for dilation in attributes.get("dilations", ())):
            raise UnsupportedModelError(
                "ONNX Runtime leaves its dilations out of the pads that auto_pad stands for"
            )
        return [axis.same(is_upper=auto_pad == b"SAME_UPPER") for axis in axes]
    sizes = attributes.get("pads", (0,) * 2 * rank)
    pads = [(0, 0) if auto_pad == b"VALID" else (sizes[at], sizes[at + rank]) for at in range(rank)]
    if any(a.window > a.extent + sum(ends) for a, ends in zip(axes, pads, strict=True)):
        raise tvm.error.OpNotImplemented("its window is larger than its image")
    if not attributes.get("ceil_mode", 0):
        return pads
    if attributes.get("count_include_pad", 0) and any(map(any, pads)):
        return None
    return [axis.whole(*ends) for axis, ends in zip(axes, pads, strict=True)]


def _axes(x: Any, attributes: Mapping[str, Any]) -> Iterator[WindowAxis]:
    """Yields the axes of the image. A window has its dilation in it."""
    rank = len(attributes["kernel_shape"])
    steps, dilations = (attributes.get(name, (1,) * rank) for name in ("strides", "dilations"))
    shape = list(x.ty.shape)[2:]
    for at, size in enumerate(attributes["kernel_shape"]):
        yield WindowAxis(int(shape[at]), (size - 1) * dilations[at] + 1, steps[at])
