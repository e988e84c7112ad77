"""The operands of tiles: how a kernel rounds its image to them, and the scale of their sums."""

from __future__ import annotations

from typing import Any, Protocol

from tunegate.edges.metaschedule.low_precision import tile_instructions as amx
from tunegate.edges.metaschedule.low_precision.product import Product
from tunegate.edges.metaschedule.low_precision.product_shape import RowsOfTiles
from tunegate.edges.metaschedule.low_precision.quantizing import QUANTIZE, ImageScale
from tunegate.edges.metaschedule.low_precision.tile_numbers import TileNumbers


class TileOperands(Protocol):
    """`functions` are the LLVM text of what they call."""

    @property
    def numbers(self) -> TileNumbers: ...
    @property
    def functions(self) -> str: ...

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        """Emits what comes before the first number is rounded; `weights` are the packed ones."""
        ...

    def round_numbers(self, source: Any, target: Any, count: int, filled: int) -> None:
        """Emits the rounding of `count` numbers from one address to another, what stands for zero
        up to `filled`."""
        ...

    def value(self, total: Any, column: Any) -> Any:
        """Returns a sum of a column in float32."""
        ...


class Bfloat16Operands:
    """Sums are float32 already."""

    functions = amx.ROUND

    def __init__(self, numbers: TileNumbers) -> None:
        self.numbers = numbers

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        """Does nothing: each number is rounded by itself."""

    def round_numbers(self, source: Any, target: Any, count: int, filled: int) -> None:
        amx.round_numbers(source, target, count, filled)

    def value(self, total: Any, column: Any) -> Any:
        return total


class Int8Operands:
    """The image is uint8 by the range that it has in this inference, weights are int8 by column,
    sums are int32."""

    functions = QUANTIZE

    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self.numbers, self._scale = numbers, ImageScale(rows, numbers)

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        self._scale.measure(product.source, threads)
        self._scale.scale_columns(weights)

    def round_numbers(self, source: Any, target: Any, count: int, filled: int) -> None:
        self._scale.quantize(source, target, count, filled)

    def value(self, total: Any, column: Any) -> Any:
        return self._scale.value(total, column)


def operands_of(rows: RowsOfTiles, numbers: TileNumbers) -> TileOperands:
    return Int8Operands(rows, numbers) if numbers.is_whole else Bfloat16Operands(numbers)
