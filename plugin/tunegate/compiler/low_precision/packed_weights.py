"""The weights of a product in the layout that tiles read."""

import numpy as np

from tunegate.compiler.low_precision.product import COLUMNS, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16, TileNumbers

_WORD_BYTES = 4
_MOST = 127


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Rounds finite float32 numbers to bfloat16 bits (uint16): to the nearest, ties to even."""
    bits = np.ascontiguousarray(values, "float32").view("uint32")
    rounded: np.ndarray = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.astype("uint16")


def packed(weights: np.ndarray, rows: RowsOfTiles, numbers: TileNumbers = BFLOAT16) -> np.ndarray:
    """Packs `weights: (taps, depth, columns)` in the order: tiles of columns, taps, tiles of depth,
    words of depth, columns, the numbers of a word. Tiles are filled with 0. Behind int8 weights are
    the column sums and the bits of the column scales."""
    given = weights.reshape(len(rows.taps), rows.tap_numbers, rows.shape.out_channels)
    if not numbers.is_whole:
        return _tile(bfloat16_bits(given), rows, numbers)
    scales, whole = quantized_columns(given)
    columns = whole_columns(rows)
    behind = np.zeros((2, columns), "int32")
    behind[0, : scales.size] = whole.sum(axis=(0, 1), dtype="int32")
    behind[1, : scales.size] = scales.view("int32")
    tiles = _tile(whole, rows, numbers).view("int32")
    return np.concatenate([tiles, behind.reshape(-1)])


def quantized_columns(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the scale of each column, (columns,) float32, and the weights as int8 around 0. A
    column of zeros may have any scale."""
    largest = np.abs(weights).max(axis=(0, 1))
    scales = np.where(largest > 0, largest / _MOST, 1.0).astype("float32")
    return scales, np.rint(weights / scales).clip(-_MOST, _MOST).astype("int8")


def packed_words(rows: RowsOfTiles, numbers: TileNumbers) -> int:
    """Returns the size of packed weights in words."""
    tiles = tile_words(rows, numbers)
    return tiles + 2 * whole_columns(rows) if numbers.is_whole else tiles


def tile_words(rows: RowsOfTiles, numbers: TileNumbers) -> int:
    """Returns the words of the weights alone, which come first."""
    return len(rows.taps) * rows.tap_depth * whole_columns(rows) // numbers.in_a_word


def column_words(rows: RowsOfTiles, numbers: TileNumbers, depth: int | None = None) -> int:
    """Returns the words of one tile of columns, over all taps or the given depth."""
    whole = len(rows.taps) * rows.tap_depth if depth is None else depth
    return whole * COLUMNS // numbers.in_a_word


def whole_columns(rows: RowsOfTiles) -> int:
    """Returns the columns, rounded up to whole tiles."""
    return -(-rows.shape.out_channels // COLUMNS) * COLUMNS


def _tile(values: np.ndarray, rows: RowsOfTiles, numbers: TileNumbers) -> np.ndarray:
    taps, columns, each = len(rows.taps), whole_columns(rows), _WORD_BYTES // numbers.each_bytes
    whole = np.zeros((taps, rows.tap_depth, columns), values.dtype)
    whole[:, : rows.tap_numbers, : rows.shape.out_channels] = values
    steps = rows.tap_depth // rows.depth
    cut = whole.reshape(taps, steps, rows.depth // each, each, columns // COLUMNS, COLUMNS)
    return np.ascontiguousarray(cut.transpose(4, 0, 1, 2, 5, 3)).reshape(-1)
