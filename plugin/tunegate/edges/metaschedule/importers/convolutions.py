"""Transposed convolutions to extents that the node says."""

from __future__ import annotations

import onnx

from tunegate.edges.metaschedule.importers.graph_view import GraphView, attribute
from tunegate.errors import UnsupportedModelError


def transposed(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """ConvTranspose with `output_shape`, which TVM does not read: the pads that give it. Raises
    UnsupportedModelError where no pads do."""
    wanted = attribute(node, "output_shape")
    if wanted is None:
        return None
    x, weights = view.type_of(node.input[0]), view.type_of(node.input[1])
    if x is None or weights is None:
        raise UnsupportedModelError("ConvTranspose with output_shape and open extents")
    begins, ends, rests = [], [], []
    is_upper = attribute(node, "auto_pad", "NOTSET") == "SAME_UPPER"
    for axis, total in enumerate(_totals(node, x.shape[2:], weights.shape[2:], wanted)):
        half = max(total, 0) // 2
        begins.append(half if is_upper else max(total, 0) - half)
        ends.append(max(total, 0) - begins[-1])
        rests.append(_at(node, "output_padding", axis, 0) + max(-total, 0))
    if any(rest >= _at(node, "strides", axis, 1) for axis, rest in enumerate(rests)):
        raise UnsupportedModelError("ConvTranspose to output_shape beyond its stride")
    return [_with_pads(node, [*begins, *ends], rests)]


def _totals(
    node: onnx.NodeProto, extents: tuple[int, ...], kernel: tuple[int, ...], wanted: list[int]
) -> list[int]:
    """Returns the total padding of each axis: its length without pads less the wanted one."""
    return [
        _at(node, "strides", axis, 1) * (extents[axis] - 1)
        + _at(node, "output_padding", axis, 0)
        + (kernel[axis] - 1) * _at(node, "dilations", axis, 1)
        + 1
        - wanted[len(wanted) - len(kernel) + axis]
        for axis in range(len(kernel))
    ]


def _at(node: onnx.NodeProto, name: str, axis: int, default: int) -> int:
    values = attribute(node, name)
    return int(values[axis]) if values else default


def _with_pads(node: onnx.NodeProto, pads: list[int], rests: list[int]) -> onnx.NodeProto:
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    del changed.attribute[:]
    replaced = {"output_shape", "auto_pad", "pads", "output_padding"}
    changed.attribute.extend(each for each in node.attribute if each.name not in replaced)
    changed.attribute.append(onnx.helper.make_attribute("pads", pads))
    changed.attribute.append(onnx.helper.make_attribute("output_padding", rests))
    return changed
