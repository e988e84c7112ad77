"""AMX instructions as calls of a kernel, and the rounding of float32 to bfloat16.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18: eight tiles of
at most 16 rows of 64 bytes; `tdpbf16ps` adds products of bfloat16 pairs to float32 sums. TVM turns
its own bfloat16 into float32 before code generation, so the rounding is LLVM text.
"""

from typing import Any, Final

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision.expressions import int64_constant
from tunegate.compiler.low_precision.product import COLUMNS, ROWS, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import TileNumbers, column_words
from tunegate.compiler.low_precision.vector_products import SumBlock

BYTES = 64
"""The bytes of a tile row."""
_SETTINGS, _TILES = 64, 8
_ROUND = "tunegate_round_bfloat16"
IMPORTED = "pragma_import_llvm"
"""The mark of a statement that brings its own functions."""
_PERMIT = "tunegate_permit_tiles"
_NO_PERMISSION = "this machine does not permit AMX tiles (arch_prctl)"
PERMIT = f"""
@{_PERMIT}.is_known = linkonce_odr hidden global i32 0
define i32 @{_PERMIT}() {{
begin:
  %known = load i32, ptr @{_PERMIT}.is_known
  %is_known = icmp ne i32 %known, 0
  br i1 %is_known, label %end, label %ask
ask:
  %refused = call i64 asm sideeffect "syscall",
    "={{ax}},{{ax}},{{di}},{{si}},~{{rcx}},~{{r11}},~{{memory}}"(i64 158, i64 4131, i64 18)
  %is_permitted = icmp eq i64 %refused, 0
  %found = zext i1 %is_permitted to i32
  store i32 %found, ptr @{_PERMIT}.is_known
  br label %end
end:
  %is = phi i32 [ 1, %begin ], [ %found, %ask ]
  ret i32 %is
}}
"""
"""`permit_tiles` asks Linux for tiles once per process (ARCH_REQ_XCOMP_PERM, state 18), and returns
whether it permits them."""
ROUND = f"""
declare <32 x bfloat> @llvm.x86.avx512bf16.cvtne2ps2bf16.512(<16 x float>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v32i16.p0(<32 x i16>, ptr, i32, <32 x i1>)
define void @{_ROUND}(ptr %from, ptr %to, i32 %count, i32 %filled) {{
begin:
  br label %next
next:
  %at = phi i32 [ 0, %begin ], [ %after, %body ]
  %is_left = icmp slt i32 %at, %filled
  br i1 %is_left, label %body, label %end
body:
  %left = sub i32 %count, %at
  %one = insertelement <32 x i32> poison, i32 %left, i32 0
  %many = shufflevector <32 x i32> %one, <32 x i32> poison, <32 x i32> zeroinitializer
  %is_read = icmp slt <32 x i32> <{", ".join(f"i32 {n}" for n in range(32))}>, %many
  %is_low = shufflevector <32 x i1> %is_read, <32 x i1> poison, <16 x i32> <{
    ", ".join(f"i32 {n}" for n in range(16))
}>
  %is_high = shufflevector <32 x i1> %is_read, <32 x i1> poison, <16 x i32> <{
    ", ".join(f"i32 {n}" for n in range(16, 32))
}>
  %low_at = getelementptr float, ptr %from, i32 %at
  %high_at = getelementptr float, ptr %low_at, i32 16
  %low = call <16 x float> @llvm.masked.load.v16f32.p0(
    ptr %low_at, i32 4, <16 x i1> %is_low, <16 x float> zeroinitializer)
  %high = call <16 x float> @llvm.masked.load.v16f32.p0(
    ptr %high_at, i32 4, <16 x i1> %is_high, <16 x float> zeroinitializer)
  %rounded = call <32 x bfloat> @llvm.x86.avx512bf16.cvtne2ps2bf16.512(
    <16 x float> %high, <16 x float> %low)
  %bits = bitcast <32 x bfloat> %rounded to <32 x i16>
  %room = sub i32 %filled, %at
  %one_room = insertelement <32 x i32> poison, i32 %room, i32 0
  %all_room = shufflevector <32 x i32> %one_room, <32 x i32> poison, <32 x i32> zeroinitializer
  %is_written = icmp slt <32 x i32> <{", ".join(f"i32 {n}" for n in range(32))}>, %all_room
  %to_at = getelementptr i16, ptr %to, i32 %at
  call void @llvm.masked.store.v32i16.p0(<32 x i16> %bits, ptr %to_at, i32 2, <32 x i1> %is_written)
  %after = add i32 %at, 32
  br label %next
end:
  ret void
}}
"""
"""`round(from, to, count, filled)` rounds `count` numbers, to the nearest and ties to even, and
fills up to `filled` with zeros."""


def round_numbers(source: Any, target: Any, count: int, size: int) -> None:
    """Emits the rounding of `count` float32 numbers from one address to bfloat16 at another, with
    zeros up to `size`."""
    numbers = [tirx.const(number, "int32") for number in (count, size)]
    T.evaluate(tirx.call_extern("void", _ROUND, source, target, *numbers))


def _load_tile(tile: int, address: Any, row_bytes: int) -> None:
    """Emits the load of a tile whose rows lie `row_bytes` apart: (16, 32) bfloat16 or (16, 64)
    int8."""
    _do("tileloadd64", _tile(tile), address, tirx.const(row_bytes, "int64"))


def _do(name: str, *operands: Any) -> None:
    T.evaluate(tirx.call_llvm_intrin("void", f"llvm.x86.{name}", *operands))


def _tile(number: int) -> Any:
    return tirx.const(number, "int8")


# Blocks by AMX: two by two tiles of sums stay in the processor while all taps are added up.

_LEFT, _RIGHT = 4, 6
"""The first tiles of the operands, after four of sums."""


class TileProducts:
    tiles: Final = 2
    functions: Final = PERMIT

    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self._rows, self._numbers = rows, numbers
        self._high = 1 if rows.row_count <= ROWS else 2

    @property
    def rows(self) -> int:
        return self._high * ROWS

    def require(self) -> None:
        """Emits an error in place of an illegal instruction."""
        with T.Assert(tirx.call_extern("int32", _PERMIT) == 1, _NO_PERMISSION):
            pass

    def begin(self) -> None:
        """Emits the tile configuration. Only right operands always have all rows."""
        settings = T.alloc_buffer((_SETTINGS // 8,), "uint64")
        T.evaluate(settings.access_ptr("rw"))
        tiles = [min(ROWS, self._rows.row_count)] * (_TILES - 2) + [ROWS] * 2
        row_bytes = int.from_bytes([BYTES, 0] * 4, "little")
        words = [1, 0, row_bytes, row_bytes, 0, 0, int.from_bytes(tiles, "little"), 0]
        for at, word in enumerate(words):
            T.buffer_store(settings, tirx.const(word, "uint64"), [at])
        _do("ldtilecfg", T.address_of(settings[0]))

    def end(self) -> None:
        _do("tilerelease")

    def add_up(self, block: SumBlock) -> None:
        rows, high, wide = self._rows, self._high, block.tiles
        for tile in range(high * wide):
            _do("tilezero", _tile(tile))
        for tap, offset in enumerate(rows.taps):
            with T.serial(int64_constant(rows.tap_depth // rows.depth)) as depth:
                for tile in range(high):
                    place = block.base + (offset + tile * ROWS * rows.step) + depth * rows.depth
                    line = self._numbers.each_bytes * rows.step
                    _load_tile(_LEFT + tile, block.left(place), line)
                for tile in range(wide):
                    place = block.first + (tile * self._words() + self._words(tap * rows.tap_depth))
                    address = block.weights(place + depth * self._words(rows.depth))
                    _load_tile(_RIGHT + tile, address, BYTES)
                for tile in range(high * wide):
                    operands = tile, _LEFT + tile // wide, _RIGHT + tile % wide
                    _do(self._numbers.multiply, *map(_tile, operands))
        row_bytes = tirx.const(4 * self.tiles * COLUMNS, "int64")
        for tile in range(high * wide):
            address = block.sums(tile // wide * ROWS, tile % wide)
            _do("tilestored64", _tile(tile), address, row_bytes)

    def _words(self, depth: int | None = None) -> int:
        return column_words(self._rows, self._numbers, depth)
