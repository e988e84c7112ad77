"""The number formats that a processor's tiles or vectors multiply, and the features they need."""

import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

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
        """Whether tiles multiply, not vectors."""
        return self.row_bytes == _ROW_BYTES

    @property
    def depth(self) -> int:
        """The numbers in a row of a tile."""
        return self.row_bytes // self.each_bytes

    @property
    def is_whole(self) -> bool:
        """Whether the numbers are integers, which have a scale."""
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
