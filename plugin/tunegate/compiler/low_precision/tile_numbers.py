"""The number formats that a processor's tiles or vectors multiply, the features they need, and the
weights of a product packed in them."""

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from tunegate.compiler.low_precision.product import COLUMNS, RowsOfTiles

_ROW_BYTES: Final = 64


class TileNumbers(NamedTuple):
    """`narrow` and `word` are the buffer types of an image and of packed weights. `flags` are the
    required processor features by Linux's names, `features` the same by LLVM's. `most_products` is
    how many a sum can hold without overflow. `multiply` is the instruction; an operand is padded to
    `row_bytes`."""

    precision: str
    each_bytes: int
    narrow: str
    word: str
    flags: tuple[str, ...]
    features: frozenset[str]
    most_products: int
    multiply: str
    row_bytes: int = _ROW_BYTES

    @property
    def is_tiled(self) -> bool:
        """True if tiles multiply, not vectors."""
        return self.row_bytes == _ROW_BYTES

    @property
    def depth(self) -> int:
        """The numbers in a row of a tile."""
        return self.row_bytes // self.each_bytes

    @property
    def is_whole(self) -> bool:
        """True if the numbers are integers, which have a scale."""
        return self.precision == "int8"

    @property
    def in_a_word(self) -> int:
        """The numbers in a word of the packed weights."""
        return 1 if self.word == self.narrow else 4 // self.each_bytes

    @property
    def word_bytes(self) -> int:
        """The bytes of a word of the packed weights."""
        return self.in_a_word * self.each_bytes


BFLOAT16: Final = TileNumbers(
    precision="bfloat16",
    each_bytes=2,
    narrow="uint16",
    word="uint16",
    flags=("amx_bf16", "amx_tile", "avx512_bf16"),
    features=frozenset({"amx-bf16", "amx-tile", "avx512bf16"}),
    most_products=sys.maxsize,
    multiply="tdpbf16ps",
)
# Twice as fast as float32 on a Zen 4, which has no tiles (docs/benchmarks).
BFLOAT16_VECTORS: Final = BFLOAT16._replace(
    flags=("avx512_bf16",),
    features=frozenset({"avx512bf16"}),
    multiply="vdpbf16ps",
    row_bytes=16,
)
# Products of two activations stay in bfloat16.
INT8: Final = TileNumbers(
    precision="int8",
    each_bytes=1,
    narrow="uint8",
    word="int32",
    flags=("amx_bf16", "amx_int8", "amx_tile", "avx512_bf16"),
    features=frozenset({"amx-bf16", "amx-int8", "amx-tile", "avx512bf16"}),
    most_products=(2**31 - 1) // (255 * 127),
    multiply="tdpbusd",
)
INT8_VECTORS: Final = INT8._replace(
    flags=("avx512_vnni",),
    features=frozenset({"avx512vnni"}),
    multiply="vpdpbusd",
    row_bytes=16,
)
# The same where products of two activations can be in bfloat16, too.
INT8_BESIDE_BFLOAT16: Final = INT8_VECTORS._replace(
    flags=(*INT8_VECTORS.flags, *BFLOAT16_VECTORS.flags),
    features=INT8_VECTORS.features | BFLOAT16_VECTORS.features,
)
NUMBERS: Final[Mapping[str, tuple[TileNumbers, ...]]] = {
    "bfloat16": (BFLOAT16, BFLOAT16_VECTORS),
    "int8": (INT8, INT8_BESIDE_BFLOAT16, INT8_VECTORS),
}
"""The formats of each precision, the fastest first."""

# The weights of a product in the layout that tiles read.

_WORD_BYTES: Final = 4
_MOST: Final = 127


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """Rounds finite numbers of any shape, float32, to bfloat16 bits of that shape, uint16: to the
    nearest, ties to even."""
    bits = np.ascontiguousarray(values, "float32").view("uint32")
    nearest: np.ndarray = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return nearest.astype("uint16")


def pack_weights(
    weights: np.ndarray, rows: RowsOfTiles, numbers: TileNumbers = BFLOAT16
) -> np.ndarray:
    """Packs `weights: (taps, depth, columns) float32` in the order: tiles of columns, taps, tiles
    of depth, words of depth, columns, the numbers of a word. Tiles are filled with 0. Returns (n,)
    uint16 of bfloat16 bits, or (words,) int32, where the column sums and the bits of the column
    scales lie behind the int8 weights."""
    in_taps = weights.reshape(len(rows.taps), rows.tap_numbers, rows.shape.out_channels)
    if not numbers.is_whole:
        return _tile(bfloat16_bits(in_taps), rows, numbers)
    scales, whole = quantized_columns(in_taps)
    columns = whole_columns(rows)
    behind = np.zeros((2, columns), "int32")
    behind[0, : scales.size] = whole.sum(axis=(0, 1), dtype="int32")
    behind[1, : scales.size] = scales.view("int32")
    tiles = _tile(whole, rows, numbers).view("int32")
    return np.concatenate([tiles, behind.reshape(-1)])


def quantized_columns(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the scale of each column, (columns,) float32, and `weights: (taps, depth, columns)
    float32` as int8 around 0, in that shape. A column of zeros may have any scale."""
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
