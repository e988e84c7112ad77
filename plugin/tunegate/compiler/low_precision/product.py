"""A product as tiles of narrow numbers compute it: its extents, the positions of its tiles, and the
kernels that are one."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from tvm import sym
from tvm.ir import Call, TensorLoad
from tvm.s_tir.stmt import SBlockRealize
from tvm.tirx import Add, BufferStore, FloatImm, For, IntImm, IterVar, Mul

from tunegate.compiler.layouts.packing import ATTRIBUTE
from tunegate.compiler.low_precision.expressions import rewritten
from tunegate.errors import UnsupportedModelError

# The extents of a product, and the positions of its tiles of 16 rows and 64 bytes. A convolution is
# a product whose rows are positions of a padded image. One row of the window is contiguous there,
# so it is one tap: its tiles begin at the position plus the tap's offset. With a stride, the image
# is stored in one part per remainder of the row (a phase), so that each tap still has a fixed
# offset. A matrix product has an image of one column and a window of one pixel.

ROWS, COLUMNS, DEPTH = 16, 16, 32
"""The size of a tile: 16 rows of 32 bfloat16 (64 int8), or weights of 32 by 16."""


class Extents(NamedTuple):
    """The height and width of an image, or of a window over it."""

    height: int
    width: int


class ProductShape(NamedTuple):
    """A product's extents, channels last. `padding` is above and left of the image."""

    images: int
    source: Extents
    channels: int
    result: Extents
    out_channels: int
    window: Extents = Extents(1, 1)
    stride: Extents = Extents(1, 1)
    dilation: Extents = Extents(1, 1)
    padding: Extents = Extents(0, 0)

    @property
    def flops(self) -> int:
        """The number of multiplications and additions."""
        positions = self.images * self.result.height * self.result.width
        return 2 * positions * self.products * self.out_channels

    @property
    def products(self) -> int:
        """The number of products in each sum."""
        return self.window.height * self.window.width * self.channels


class RowsOfTiles:
    """The positions of tile operands. Values count elements of an operand, but `row_count`,
    `pitch`, `phases` and `phase_height` count rows and positions."""

    def __init__(self, shape: ProductShape, depth: int = DEPTH) -> None:
        self.shape, self.depth = shape, depth

    @cached_property
    def has_whole_windows(self) -> bool:
        """True if the pixels in a window row are neighbours."""
        return self.shape.dilation.width == 1

    @cached_property
    def pixel(self) -> int:
        """The distance of two pixels; a window of one pixel is rounded up to whole tiles."""
        alone = self.shape.window.width == 1 or not self.has_whole_windows
        return round_up(self.shape.channels, self.depth) if alone else self.shape.channels

    @cached_property
    def pitch(self) -> int:
        """The positions from one row of the result to the next; the last ones may have no
        result."""
        shape = self.shape
        reach = (shape.window.width - 1) * shape.dilation.width
        wide = (shape.result.width - 1) * shape.stride.width + reach + 1
        return -(-wide // shape.stride.width)

    @cached_property
    def step(self) -> int:
        """The distance of two positions."""
        return self.shape.stride.width * self.pixel

    @cached_property
    def line(self) -> int:
        """The distance of two rows of the padded image."""
        return self.pitch * self.step

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The row remainders (by the stride) of the padded image that a window reads."""
        return tuple(sorted({row % self.shape.stride.height for row in self._window_rows}))

    @cached_property
    def phase_height(self) -> int:
        """The rows of each phase."""
        reach = max(row // self.shape.stride.height for row in self._window_rows)
        return self.shape.result.height + reach

    @cached_property
    def taps(self) -> tuple[int, ...]:
        """The offset of each tap's operands from its position, in window order."""
        lines = [
            self.phases.index(row % self.shape.stride.height) * self.phase_height
            + row // self.shape.stride.height
            for row in self._window_rows
        ]
        if self.has_whole_windows:
            return tuple(line * self.line for line in lines)
        columns = [
            column * self.shape.dilation.width * self.pixel
            for column in range(self.shape.window.width)
        ]
        return tuple(line * self.line + column for line in lines for column in columns)

    @cached_property
    def tap_depth(self) -> int:
        """The numbers that one tap multiplies, rounded up to whole tiles."""
        return round_up(self.tap_numbers, self.depth)

    @cached_property
    def tap_numbers(self) -> int:
        """The numbers that one tap multiplies."""
        across = self.shape.window.width if self.has_whole_windows else 1
        return across * self.shape.channels

    @cached_property
    def row_count(self) -> int:
        """The positions of one image, including those between its rows that have no result."""
        return (self.shape.result.height - 1) * self.pitch + self.shape.result.width

    @cached_property
    def image(self) -> int:
        """The numbers of one padded image."""
        return len(self.phases) * self.phase_height * self.line

    def size(self, rows: int) -> int:
        """Returns the number of elements read for `rows` rows, in whole tiles."""
        last = (rows - 1) * self.step + max(self.taps) + self.tap_depth
        return max(last, self.image + self.depth)

    @cached_property
    def _window_rows(self) -> tuple[int, ...]:
        return tuple(row * self.shape.dilation.height for row in range(self.shape.window.height))


def round_up(number: int, of: int) -> int:
    return -(-number // of) * of


# Matches a fused kernel that is a product, of constant weights or two activations: its operands,
# and the stages that follow the sums.

_CONVOLUTION_LOOPS = (4, 3)
"""The loops over the result of a convolution, and its reduction loops."""
_IMAGE_ROW_AXES = 3
"""The dimensions of a convolution's result before its columns."""
_FLOAT = "float32"


class Stage(NamedTuple):
    """An element-wise step from the sums to the result: writes `value` over `variables` (one per
    dimension of the result) into `buffer`."""

    buffer: Any
    variables: tuple[Any, ...]
    value: Any


class Product(NamedTuple):
    """A product in the kernel's own buffers, all float32. `source` is (images, height, width,
    channels) of a convolution, `(*row_extents, depth)` else; `sums` are `(*row_extents, columns)`.
    `weights` is a parameter index; those weights are (taps, depth, columns). `right` is that buffer
    if it is an activation, one matrix (depth, columns) per image."""

    shape: ProductShape
    row_extents: tuple[int, ...]
    source: Any
    weights: int
    sums: Any
    stages: tuple[Stage, ...]
    right: Any = None

    @property
    def is_convolution(self) -> bool:
        """True if rows are positions of images, not dimensions of a matrix product."""
        return (
            len(self.row_extents) == _IMAGE_ROW_AXES and self.row_extents[1:] == self.shape.result
        )

    def row_at(self, image: Any, row: Any) -> list[Any]:
        """Returns the indices of a row of a matrix product."""
        if self.right is not None:
            return [*self.image_at(image), row]
        return _unravel(row, self.row_extents)

    def image_at(self, image: Any) -> list[Any]:
        """Returns the indices of one matrix of a batched product."""
        return _unravel(image, self.row_extents[:-1])

    @property
    def result(self) -> Any:
        """The buffer of the last stage, or of the sums."""
        return self.stages[-1].buffer if self.stages else self.sums


def _unravel(place: Any, extents: Sequence[int]) -> list[Any]:
    indices = []
    for extent in reversed(extents):
        indices.append(place % extent)
        place = place // extent
    return indices[::-1]


def product_of(function: Any) -> Product | None:
    """Returns the product that the kernel computes, None if it is no product of a known kind."""
    blocks = [*blocks_of(function)]
    places = [at for at, block in enumerate(blocks) if loops_of(block)[1]]
    if len(places) != 1 or places[0] > 1:
        return None
    (at,) = places
    factors = factors_of(blocks[at])
    if factors is None:
        return None
    left, right = factors
    parameters = list(function.params)
    weights = next((n for n, each in enumerate(parameters) if each.same_as(right.source)), None)
    constants = {int(n) for n in (function.attrs or {}).get(ATTRIBUTE, ())}
    stages = stages_of(blocks[at], blocks[at + 1 :])
    if weights is None or stages is None:
        return None
    is_packed = weights in constants
    is_convolution = tuple(map(len, loops_of(blocks[at]))) == _CONVOLUTION_LOOPS
    match = (_convolution if is_convolution else _matrices) if is_packed else _activations
    reading = match(blocks[at], blocks[:at], left, right)
    if reading is None or not any(reading[1].same_as(parameter) for parameter in parameters):
        return None
    shape, source, row_extents = reading
    sums, right_buffer = blocks[at].body.buffer, None if is_packed else right.source
    return Product(shape, row_extents, source, weights, sums, stages, right_buffer)


def blocks_of(function: Any) -> Iterator[Any]:
    """Yields the blocks below the root, up to the first statement that is no block."""
    if not isinstance(function.body, SBlockRealize):
        return
    body = function.body.block.body
    for nest in getattr(body, "seq", [body]):
        inner = nest
        while isinstance(inner, For):
            inner = inner.body
        if not isinstance(inner, SBlockRealize) or not isinstance(inner.block.body, BufferStore):
            return
        yield inner.block


def loops_of(block: Any) -> tuple[list[Any], list[Any]]:
    """Returns the variables over the result, and the reduction variables."""
    kinds = IterVar.DataPar, IterVar.CommReduce
    return tuple(  # type: ignore[return-value]
        [v for v in block.iter_vars if int(v.iter_type) == kind] for kind in kinds
    )


def factors_of(block: Any) -> tuple[Any, Any] | None:
    """Returns the two loads whose products are summed in float32."""
    match block.body.value:
        case Add(a=TensorLoad() as so_far, b=Mul(a=TensorLoad() as left, b=TensorLoad() as right)):
            kinds = {str(each.source.dtype) for each in (so_far, left, right)}
            is_sum = so_far.source.same_as(block.body.buffer)
            return (left, right) if is_sum and kinds == {_FLOAT} else None
        case _:
            return None


def stages_of(sums: Any, blocks: Sequence[Any]) -> tuple[Stage, ...] | None:
    """Returns the stages after the sums; None unless each is element-wise on their shape."""
    extents = _extents(loops_of(sums)[0])
    stages: list[Stage] = []
    for block in blocks:
        over, sum_loops = loops_of(block)
        if sum_loops or _extents(over) != extents or not writes_own_place(block):
            return None
        variables = tuple(v.var for v in over)
        stages.append(Stage(block.body.buffer, variables, block.body.value))
    return tuple(stages)


def writes_own_place(block: Any) -> bool:
    """Returns whether the indices of what a block writes are its loops."""
    return _are_same(block.body.indices, [v.var for v in loops_of(block)[0]])


def _is_same(first: Any, other: Any) -> bool:
    return bool(first.same_as(other))


def _extents(variables: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(v.dom.extent) for v in variables)


_Match = tuple[ProductShape, Any, tuple[int, ...]] | None


def _activations(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Match:
    """Matches batched matrix products: (..., rows, depth) by (..., depth, columns)."""
    over, sum_loops = loops_of(block)
    variables = [v.var for v in over]
    if before or len(sum_loops) != 1 or len(variables) <= 2:  # noqa: PLR2004
        return None
    depth, columns = sum_loops[0].var, variables[-1]
    indices = [*variables[:-1], depth], [*variables[:-2], depth, columns]
    if not all(map(_are_same, (left.indices, right.indices), indices)):
        return None
    *images, height, width = _extents(over)
    extents = Extents(height, 1)
    shape = ProductShape(math.prod(images), extents, int(sum_loops[0].dom.extent), extents, width)
    return shape, left.source, (*images, height)


def _are_same(indices: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(indices) == len(others) and all(map(_is_same, indices, others))


def _matrices(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Match:
    """Matches a matrix product: (..., rows, depth) by (depth, columns)."""
    over, sum_loops = loops_of(block)
    variables = [v.var for v in over]
    if before or len(sum_loops) != 1 or len(right.indices) != 2:  # noqa: PLR2004
        return None
    depth = sum_loops[0].var
    indices = [*variables[:-1], depth], [depth, variables[-1]]
    if not all(map(_are_same, (left.indices, right.indices), indices)):
        return None
    *rows, columns = _extents(over)
    extents = Extents(math.prod(rows), 1)
    shape = ProductShape(1, extents, int(sum_loops[0].dom.extent), extents, columns)
    return shape, left.source, tuple(rows)


def _convolution(block: Any, before: Sequence[Any], left: Any, right: Any) -> _Match:
    """Matches a convolution with channels last."""
    over, sum_loops = ([v.var for v in kind] for kind in loops_of(block))
    image, height, width, columns = over
    rows, across, depth = sum_loops
    # The indices must be those of a convolution: steps and taps in height and width.
    weights = [rows, across, depth, columns]
    is_ours = len(left.indices) == len(right.indices) == len(weights) and all(
        map(_is_same, [*right.indices, left.indices[0], left.indices[3]], [*weights, image, depth])
    )
    steps = [
        _linear(index, pair)
        for index, pair in zip(left.indices[1:3], ((height, rows), (width, across)), strict=True)
    ]
    if not is_ours or None in steps:
        return None
    # A padding before it is part of the product.
    source, padding = padding_of(before, left.source)
    if source is None:
        return None
    (*_, channels), images = map(int, source.shape), int(source.shape[0])
    extents = _extents(loops_of(block)[0])
    window = _extents(loops_of(block)[1])
    strides, dilations = zip(*[step for step in steps if step is not None], strict=True)
    shape = ProductShape(
        images=images,
        source=Extents(int(source.shape[1]), int(source.shape[2])),
        channels=channels,
        result=Extents(*extents[1:3]),
        out_channels=extents[3],
        window=Extents(*window[:2]),
        stride=Extents(*strides),
        dilation=Extents(*dilations),
        padding=padding,
    )
    # Groups and parts of a batch are not matched.
    is_whole = window[2] == channels and extents[0] == images
    return (shape, source, extents[:3]) if is_whole else None


def _linear(index: Any, variables: Sequence[Any]) -> tuple[int, int] | None:
    """Returns the factors of the two variables if the index is their weighted sum, else None."""
    coefficients = list(sym.detect_linear_equation(index, list(variables)))
    if len(coefficients) != 3 or not all(isinstance(each, IntImm) for each in coefficients):  # noqa: PLR2004
        return None
    first, second, rest = map(int, coefficients)
    return (first, second) if rest == 0 and first > 0 and second > 0 else None


# The zero border around the image of a convolution.

_IMAGE_RANK = 4
"""The dimensions of an image batch: image, height, width and channels."""
_CHOICE = "prim.if_then_else"


def padding_of(before: Sequence[Any], image: Any) -> tuple[Any | None, Extents]:
    """Returns the buffer inside the border, and its padding above and left. Without a block before
    the convolution that is the image itself; the buffer is None if the block is no border."""
    if not before:
        return image, Extents(0, 0)
    (block,) = before
    inside, condition = _parts(block.body.value)
    is_the_image = block.body.buffer.same_as(image) and len(block.iter_vars) == _IMAGE_RANK
    if inside is None or not is_the_image or len(inside.indices) != _IMAGE_RANK:
        return None, Extents(0, 0)
    offsets = [
        _offset(index, each.var)
        for index, each in zip(inside.indices, block.iter_vars, strict=True)
    ]
    borders = [offset for offset in offsets if offset is not None]
    if len(borders) < len(offsets):
        return None, Extents(0, 0)
    is_border = _is_border(block, condition, borders, [int(n) for n in inside.source.shape])
    return (inside.source if is_border else None), Extents(borders[1], borders[2])


def _parts(value: Any) -> tuple[Any | None, Any | None]:
    """Returns the load inside the border, and its condition."""
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


def _offset(index: Any, variable: Any) -> int | None:
    """Returns the constant offset of the index from its variable, None if it has none."""
    coefficients = list(sym.detect_linear_equation(index, [variable]))
    if len(coefficients) != 2 or not all(isinstance(each, IntImm) for each in coefficients):  # noqa: PLR2004
        return None
    factor, distance = map(int, coefficients)
    return -distance if factor == 1 and distance <= 0 else None


def _is_border(
    block: Any, condition: Any | None, before: Sequence[int], extents: Sequence[int]
) -> bool:
    """Returns whether the condition holds exactly inside: it is tested on both sides of each
    edge."""
    whole = [int(variable.dom.extent) for variable in block.iter_vars]
    if condition is None:
        return whole == [*extents] and not any(before)
    for axis, (begin, extent) in enumerate(zip(before, extents, strict=True)):
        for at in (begin - 1, begin, begin + extent - 1, begin + extent):
            places = [*before[:axis], at, *before[axis + 1 :]]
            if 0 <= at < whole[axis] and not _is_as(
                condition, block, places, begin <= at < begin + extent
            ):
                return False
    return True


def _is_as(condition: Any, block: Any, at: Sequence[int], is_inside: bool) -> bool:
    """Returns whether the condition has the wanted value at a position. Raises
    UnsupportedModelError."""
    variables = [variable.var for variable in block.iter_vars]
    values = {v: IntImm(v.ty, place) for v, place in zip(variables, at, strict=True)}
    value = rewritten(condition, values, lambda buffer, indices: buffer[tuple(indices)])
    answer = sym.Analyzer().simplify(value)
    if not isinstance(answer, IntImm):
        message = "a border depends on more than the place"
        raise UnsupportedModelError(message)
    return bool(answer) == is_inside
