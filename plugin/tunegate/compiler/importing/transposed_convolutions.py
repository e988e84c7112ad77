"""Rewrites transposed convolutions with given output extents, and Col2Im as one."""

import math

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError


def rewrite_conv_transpose(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Rewrites ConvTranspose with `output_shape`, which TVM ignores, as one with equivalent pads.
    Raises UnsupportedModelError if no pads give that shape."""
    output_shape = graph_view.attribute(node, "output_shape")
    if output_shape is None:
        return None
    x, weights = view.type_of(node.input[0]), view.type_of(node.input[1])
    if x is None or weights is None:
        raise UnsupportedModelError("ConvTranspose with output_shape and open extents")
    begins, ends, rests = [], [], []
    is_upper = graph_view.attribute(node, "auto_pad", "NOTSET") == "SAME_UPPER"
    for axis, total in enumerate(_totals(node, x.shape[2:], weights.shape[2:], output_shape)):
        half = max(total, 0) // 2
        begins.append(half if is_upper else max(total, 0) - half)
        ends.append(max(total, 0) - begins[-1])
        rests.append(_at(node, "output_padding", axis, 0) + max(-total, 0))
    if any(rest >= _at(node, "strides", axis, 1) for axis, rest in enumerate(rests)):
        raise UnsupportedModelError("ConvTranspose to output_shape beyond its stride")
    return [_replace_pads(node, [*begins, *ends], rests)]


def rewrite_col2im(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Rewrites Col2Im: a transposed convolution whose kernel puts each row of the columns in its
    place of the block."""
    data, result = view.type_of(node.input[0]), view.type_of(node.output[0])
    block_shape = view.constant(graph_view.operand(node, 2))
    if data is None or result is None or block_shape is None or data.dtype.kind != "f":
        return None
    block, image = [int(each) for each in block_shape], result.shape[2:]
    pads = graph_view.attribute(node, "pads", [0] * 2 * len(block))
    counts, rests = [], []
    for axis, extent in enumerate(image):
        stride, dilation = _at(node, "strides", axis, 1), _at(node, "dilations", axis, 1)
        room = extent + pads[axis] + pads[axis + len(block)] - dilation * (block[axis] - 1) - 1
        counts.append(room // stride + 1)
        rests.append(room % stride)
    new, size = graph_view.Replacement(node), math.prod(block)
    columns = new.add_reshape(node.input[0], [-1, size, *counts])
    kernel = new.constant(np.eye(size).reshape(size, 1, *block), data.dtype)
    options = {name: graph_view.attribute(node, name) for name in ("strides", "dilations")}
    options = {name: value for name, value in options.items() if value}
    images = new.add("ConvTranspose", [columns, kernel], pads=pads, output_padding=rests, **options)
    new.add_reshape(images, result.shape, to=node.output[0])
    return new.nodes


def _totals(
    node: onnx.NodeProto,
    extents: tuple[int, ...],
    kernel: tuple[int, ...],
    output_lengths: list[int],
) -> list[int]:
    """Returns the total padding of each axis: its length without pads minus the wanted one."""
    return [
        _at(node, "strides", axis, 1) * (extents[axis] - 1)
        + _at(node, "output_padding", axis, 0)
        + (kernel[axis] - 1) * _at(node, "dilations", axis, 1)
        + 1
        - output_lengths[len(output_lengths) - len(kernel) + axis]
        for axis in range(len(kernel))
    ]


def _at(node: onnx.NodeProto, name: str, axis: int, default: int) -> int:
    values = graph_view.attribute(node, name)
    return int(values[axis]) if values else default


def _replace_pads(node: onnx.NodeProto, pads: list[int], rests: list[int]) -> onnx.NodeProto:
    with_pads = graph_view.without_attributes(
        node, {"output_shape", "auto_pad", "pads", "output_padding"}
    )
    with_pads.attribute.append(onnx.helper.make_attribute("pads", pads))
    with_pads.attribute.append(onnx.helper.make_attribute("output_padding", rests))
    return with_pads
