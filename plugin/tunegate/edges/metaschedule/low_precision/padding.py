"""The border of zeros around the image of a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import sym
from tvm.ir import Call, TensorLoad
from tvm.tirx import FloatImm, IntImm

from tunegate.edges.metaschedule.low_precision.expressions import rewritten
from tunegate.edges.metaschedule.low_precision.product_shape import Extents
from tunegate.errors import UnsupportedModelError

_IMAGE = 4
"""The dimensions of images: they, height, width and channels."""
_CHOICE = "prim.if_then_else"


def padding_of(before: Sequence[Any], image: Any) -> tuple[Any | None, Extents]:
    """Returns the buffer inside the border, and what lies above it and left of it. Without a block
    before the convolution that is the image itself; None stands for anything else than a border."""
    if not before:
        return image, Extents(0, 0)
    (block,) = before
    inside, condition = _parts(block.body.value)
    is_the_image = block.body.buffer.same_as(image) and len(block.iter_vars) == _IMAGE
    if inside is None or not is_the_image or len(inside.indices) != _IMAGE:
        return None, Extents(0, 0)
    moved = [
        _moved(index, each.var) for index, each in zip(inside.indices, block.iter_vars, strict=True)
    ]
    if any(each is None for each in moved):
        return None, Extents(0, 0)
    before_it = [each or 0 for each in moved]
    is_border = _is_border(block, condition, before_it, [int(n) for n in inside.source.shape])
    return (inside.source if is_border else None), Extents(before_it[1], before_it[2])


def _parts(value: Any) -> tuple[Any | None, Any | None]:
    """The load of what is inside of the border, and its condition."""
    match value:
        case TensorLoad():
            return value, None
        case Call() if str(value.op.name) == _CHOICE:
            condition, inside, outside = value.args
            is_zero = isinstance(outside, FloatImm) and float(outside.value) == 0.0
            is_load = isinstance(inside, TensorLoad)
            return (inside, condition) if is_zero and is_load else (None, None)
        case _:
            return None, None


def _moved(index: Any, variable: Any) -> int | None:
    """Returns the offset of the index before its variable, None where there is none."""
    found = list(sym.detect_linear_equation(index, [variable]))
    if len(found) != 2 or not all(isinstance(each, IntImm) for each in found):  # noqa: PLR2004
        return None
    factor, distance = map(int, found)
    return -distance if factor == 1 and distance <= 0 else None


def _is_border(
    block: Any, condition: Any | None, before: Sequence[int], extents: Sequence[int]
) -> bool:
    """Returns whether the condition holds inside alone: it is tested at both sides of each edge."""
    padded = [int(each.dom.extent) for each in block.iter_vars]
    if condition is None:
        return padded == [*extents] and not any(before)
    for axis, (begin, extent) in enumerate(zip(before, extents, strict=True)):
        for at in (begin - 1, begin, begin + extent - 1, begin + extent):
            places = [*before[:axis], at, *before[axis + 1 :]]
            if 0 <= at < padded[axis] and not _is_as(
                condition, block, places, begin <= at < begin + extent
            ):
                return False
    return True


def _is_as(condition: Any, block: Any, at: Sequence[int], wanted: bool) -> bool:
    """Returns whether the condition has the wanted value at a place. Raises
    UnsupportedModelError."""
    variables = [each.var for each in block.iter_vars]
    values = [IntImm(v.ty, place) for v, place in zip(variables, at, strict=True)]
    asked = rewritten(condition, dict(zip(variables, values, strict=True)), _load)
    found = sym.Analyzer().simplify(asked)
    if not isinstance(found, IntImm):
        message = "a border depends on more than the place"
        raise UnsupportedModelError(message)
    return bool(found) == wanted


def _load(buffer: Any, indices: list[Any]) -> Any:
    return buffer[tuple(indices)]
