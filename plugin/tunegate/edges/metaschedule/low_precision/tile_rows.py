"""The image of a product in narrow numbers, as tiles read it: what a kernel does first."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.edges.metaschedule.low_precision.loops import long, loop, whole_buffer
from tunegate.edges.metaschedule.low_precision.operands import TileOperands
from tunegate.edges.metaschedule.low_precision.product import Product
from tunegate.edges.metaschedule.low_precision.product_shape import RowsOfTiles


class TileRows:
    """Emits a buffer of so many rows, whole tiles of them, and what fills it."""

    def __init__(
        self, product: Product, row_count: int, operands: TileOperands, threads: int
    ) -> None:
        self._product, self._operands, self._threads = product, operands, threads
        self._rows = RowsOfTiles(product.shape, operands.numbers.depth)
        images = product.shape.images - 1
        size = self._rows.size(row_count) + images * self._rows.image
        self._buffer = whole_buffer(size, operands.numbers.narrow)

    def at(self, place: Any) -> Any:
        """The address of an element."""
        return T.address_of(self._buffer[place])

    def fill(self) -> None:
        """Rounds the image; the border and what a tile reads behind the last image stand for 0."""
        rows, shape = self._rows, self._product.shape
        for phase, remainder in enumerate(rows.phases):
            with loop(shape.images * rows.phase_height, self._threads) as at:
                image, line = at // rows.phase_height, at % rows.phase_height
                y = line * shape.stride.height + remainder - shape.padding.height
                to = image * rows.image + (phase * rows.phase_height + line) * rows.line
                self._line(image, y, to, remainder)
        self._zeros(long(shape.images * rows.image), rows.depth)

    def _line(self, image: Any, y: Any, to: Any, remainder: int) -> None:
        """A row of the padded image, which may be of the border."""
        rows, shape = self._rows, self._product.shape
        last = (rows.phase_height - 1) * shape.stride.height + remainder - shape.padding.height
        if remainder >= shape.padding.height and last < shape.source.height:
            self._pixels(image, y, to)
            return
        with T.If(tirx.all(y >= 0, y < shape.source.height)):
            with T.Then():
                self._pixels(image, y, to)
            with T.Else():
                self._zeros(to, rows.line)

    def _pixels(self, image: Any, y: Any, to: Any) -> None:
        rows, shape = self._rows, self._product.shape
        left = shape.padding.width
        width = rows.line // rows.pixel - left
        pixels = min(shape.source.width, width)
        if left:
            self._zeros(to, left * rows.pixel)
        to = to + left * rows.pixel
        if rows.pixel == shape.channels:
            source = self._source(image, y, long(0))
            self._operands.round_numbers(
                source, self.at(to), pixels * rows.pixel, width * rows.pixel
            )
            return
        with T.serial(long(pixels)) as x:
            source = self._source(image, y, x)
            self._operands.round_numbers(
                source, self.at(to + x * rows.pixel), shape.channels, rows.pixel
            )
        if width > pixels:
            self._zeros(to + pixels * rows.pixel, (width - pixels) * rows.pixel)

    def _source(self, image: Any, y: Any, x: Any) -> Any:
        """The address of a pixel."""
        places = [image, y, x] if self._product.is_convolution else self._product.row_at(image, y)
        return T.address_of(self._product.source[(*places, 0)])

    def _zeros(self, to: Any, count: int) -> None:
        self._operands.round_numbers(self.at(to), self.at(to), 0, count)
