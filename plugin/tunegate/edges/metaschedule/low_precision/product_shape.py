"""The extents of a product, and where its tiles of 16 rows and 64 bytes lie.

A convolution is a product whose rows are positions of a padded image. The window of one row of
pixels lies in one piece there, so that each row of the window is one tap: its tiles begin at the
position, moved by the tap. Rows of the image that a stride tears apart are kept in one part of the
image for each remainder (a phase), which makes every tap a fixed distance again. A matrix product
has an image of one column and a window of one pixel.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

ROWS, COLUMNS, DEPTH = 16, 16, 32
"""The size of one tile: 16 rows of 32 bfloat16 (of int8 twice as many), or weights of 32 by 16."""


class Extents(NamedTuple):
    """Those of an image and of a window over it: height, then width."""

    height: int
    width: int


class ProductShape(NamedTuple):
    """Channels are last. `padding` is what lies above the image and left of it."""

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
        """Multiplications and additions."""
        positions = self.images * self.result.height * self.result.width
        return 2 * positions * self.products * self.out_channels

    @property
    def products(self) -> int:
        """Returns the number of products in each sum."""
        return self.window.height * self.window.width * self.channels


class RowsOfTiles:
    """The places of the operands of tiles. All numbers are elements of an operand but `row_count`,
    `pitch`, `phases` and `phase_height`, which count rows and positions."""

    def __init__(self, shape: ProductShape, depth: int = DEPTH) -> None:
        self.shape, self.depth = shape, depth

    @cached_property
    def has_whole_windows(self) -> bool:
        """Returns whether the pixels of one row of the window are neighbours."""
        return self.shape.dilation.width == 1

    @cached_property
    def pixel(self) -> int:
        """The distance of two pixels: a window of one pixel is filled up to whole tiles."""
        alone = self.shape.window.width == 1 or not self.has_whole_windows
        return _whole(self.shape.channels, self.depth) if alone else self.shape.channels

    @cached_property
    def pitch(self) -> int:
        """The positions from one row of the result to the next; the last ones may be of none."""
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
        """The remainders of rows of the padded image, by the stride, that a window reads."""
        return tuple(sorted({row % self.shape.stride.height for row in self._window_rows}))

    @cached_property
    def phase_height(self) -> int:
        """The rows of each phase."""
        reach = max(row // self.shape.stride.height for row in self._window_rows)
        return self.shape.result.height + reach

    @cached_property
    def taps(self) -> tuple[int, ...]:
        """Returns the offset of each tap's operands from its position, in the order of the
        window."""
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
        """The numbers that one tap multiplies, with what fills the last tile."""
        return _whole(self.tap_numbers, self.depth)

    @cached_property
    def tap_numbers(self) -> int:
        """The numbers that one tap multiplies."""
        across = self.shape.window.width if self.has_whole_windows else 1
        return across * self.shape.channels

    @cached_property
    def row_count(self) -> int:
        """Positions of one image, with those between its rows that are of no result."""
        return (self.shape.result.height - 1) * self.pitch + self.shape.result.width

    @cached_property
    def image(self) -> int:
        """The numbers of one padded image."""
        return len(self.phases) * self.phase_height * self.line

    def size(self, rows: int) -> int:
        """Returns the number of elements read where so many rows are computed, whole tiles of
        them."""
        last = (rows - 1) * self.step + max(self.taps) + self.tap_depth
        return max(last, self.image + self.depth)

    @cached_property
    def _window_rows(self) -> tuple[int, ...]:
        return tuple(row * self.shape.dilation.height for row in range(self.shape.window.height))


def _whole(number: int, of: int) -> int:
    return -(-number // of) * of
