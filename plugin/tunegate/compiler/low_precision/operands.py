"""The operands of tiles: how a kernel rounds its image, and the scale of the sums."""

import math
from typing import Any, Final, Protocol

from tvm import tirx
from tvm.tirx.script.builder import ir as T

from tunegate.compiler.low_precision import tiles as amx
from tunegate.compiler.low_precision.expressions import int64_constant, loop, whole_buffer
from tunegate.compiler.low_precision.product import COLUMNS, Product, RowsOfTiles
from tunegate.compiler.low_precision.tile_numbers import TileNumbers, tile_words, whole_columns

# Quantizes activations to uint8 by their range in this inference, and back. Jacob et al.,
# "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
# CVPR 2018, equations 1 and 7: q stands for x = scale (q - zero). So a sum of products is scale
# times (the integer sum less zero times the sum of the column's weights). The range always contains
# 0, which borders are filled with.

_LEVELS: Final = 255.0
_SCALE, _INVERSE, _ZERO = range(3)
_RANGE: Final = "tunegate_range"
_QUANTIZE: Final = "tunegate_quantize_uint8"
_LANES: Final = ", ".join(f"i32 {n}" for n in range(16))
_ZEROS: Final = "<16 x i32> zeroinitializer"


def _fill(name: str, value: str) -> str:
    """Returns LLVM text that fills vectors of 64 and of 16 with one number."""
    return "\n".join(
        f"  %one_{name}{n} = insertelement <{n} x float> poison, float {value}, i32 0\n"
        f"  %{name}{n} = shufflevector <{n} x float> %one_{name}{n}, <{n} x float> poison, "
        f"<{n} x i32> zeroinitializer"
        for n in (64, 16)
    )


def _numbers(name: str, count: int, vector: str) -> str:
    """Returns LLVM text that rounds a vector to uint8; NaN becomes 0."""
    floats, n = f"<{count} x float>", name
    top = ", ".join(["float 255.0"] * count)
    return f"""
  %{n}_moved = call {floats} @llvm.fma.v{count}f32(
    {floats} {vector}, {floats} %by{count}, {floats} %plus{count})
  %{n}_is_over = fcmp ogt {floats} %{n}_moved, zeroinitializer
  %{n}_over = select <{count} x i1> %{n}_is_over, {floats} %{n}_moved, {floats} zeroinitializer
  %{n}_is_under = fcmp olt {floats} %{n}_over, <{top}>
  %{n}_inside = select <{count} x i1> %{n}_is_under, {floats} %{n}_over, {floats} <{top}>
  %{n}_wide = fptosi {floats} %{n}_inside to <{count} x i32>
  %{n} = trunc <{count} x i32> %{n}_wide to <{count} x i8>"""


QUANTIZE: Final = f"""
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16i8.p0(<16 x i8>, ptr, i32, <16 x i1>)
declare <64 x float> @llvm.fma.v64f32(<64 x float>, <64 x float>, <64 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare float @llvm.vector.reduce.fmin.v64f32(<64 x float>)
declare float @llvm.vector.reduce.fmax.v64f32(<64 x float>)
define void @{_RANGE}(ptr %whole, i32 %first, i32 %count, ptr %least, ptr %most) {{
begin:
  %from = getelementptr float, ptr %whole, i32 %first
  %last = sub i32 %count, 64
  br label %next
next:
  %at = phi i32 [ 0, %begin ], [ %after, %body ]
  %low = phi <64 x float> [ zeroinitializer, %begin ], [ %lower, %body ]
  %high = phi <64 x float> [ zeroinitializer, %begin ], [ %higher, %body ]
  %is_whole = icmp sle i32 %at, %last
  br i1 %is_whole, label %body, label %end
body:
  %place = getelementptr float, ptr %from, i32 %at
  %x = load <64 x float>, ptr %place, align 4
  %is_lower = fcmp olt <64 x float> %x, %low
  %lower = select <64 x i1> %is_lower, <64 x float> %x, <64 x float> %low
  %is_higher = fcmp ogt <64 x float> %x, %high
  %higher = select <64 x i1> %is_higher, <64 x float> %x, <64 x float> %high
  %after = add i32 %at, 64
  br label %next
end:
  %min = call float @llvm.vector.reduce.fmin.v64f32(<64 x float> %low)
  %max = call float @llvm.vector.reduce.fmax.v64f32(<64 x float> %high)
  br label %next_one
next_one:
  %one_at = phi i32 [ %at, %end ], [ %one_after, %one ]
  %one_min = phi float [ %min, %end ], [ %new_min, %one ]
  %one_max = phi float [ %max, %end ], [ %new_max, %one ]
  %is_left = icmp slt i32 %one_at, %count
  br i1 %is_left, label %one, label %done
one:
  %one_place = getelementptr float, ptr %from, i32 %one_at
  %one_x = load float, ptr %one_place, align 4
  %is_less = fcmp olt float %one_x, %one_min
  %new_min = select i1 %is_less, float %one_x, float %one_min
  %is_more = fcmp ogt float %one_x, %one_max
  %new_max = select i1 %is_more, float %one_x, float %one_max
  %one_after = add i32 %one_at, 1
  br label %next_one
done:
  store float %one_min, ptr %least
  store float %one_max, ptr %most
  ret void
}}
define void @{_QUANTIZE}(
  ptr %from, ptr %to, i32 %count, i32 %filled, float %inverse, float %zero) {{
begin:
  %half = fadd float %zero, 0.5
{_fill("by", "%inverse")}
{_fill("plus", "%half")}
  %last = sub i32 %count, 64
  br label %next
next:
  %at = phi i32 [ 0, %begin ], [ %after, %body ]
  %is_whole = icmp sle i32 %at, %last
  br i1 %is_whole, label %body, label %next_some
body:
  %place = getelementptr float, ptr %from, i32 %at
  %x = load <64 x float>, ptr %place, align 4
{_numbers("q", 64, "%x")}
  %to_at = getelementptr i8, ptr %to, i32 %at
  store <64 x i8> %q, ptr %to_at, align 1
  %after = add i32 %at, 64
  br label %next
next_some:
  %some_at = phi i32 [ %at, %next ], [ %some_after, %some ]
  %is_left = icmp slt i32 %some_at, %filled
  br i1 %is_left, label %some, label %end
some:
  %left = sub i32 %count, %some_at
  %one = insertelement <16 x i32> poison, i32 %left, i32 0
  %many = shufflevector <16 x i32> %one, <16 x i32> poison, {_ZEROS}
  %is_read = icmp slt <16 x i32> <{_LANES}>, %many
  %some_place = getelementptr float, ptr %from, i32 %some_at
  %y = call <16 x float> @llvm.masked.load.v16f32.p0(
    ptr %some_place, i32 4, <16 x i1> %is_read, <16 x float> zeroinitializer)
{_numbers("some_q", 16, "%y")}
  %room = sub i32 %filled, %some_at
  %one_room = insertelement <16 x i32> poison, i32 %room, i32 0
  %all_room = shufflevector <16 x i32> %one_room, <16 x i32> poison, {_ZEROS}
  %is_written = icmp slt <16 x i32> <{_LANES}>, %all_room
  %some_to = getelementptr i8, ptr %to, i32 %some_at
  call void @llvm.masked.store.v16i8.p0(
    <16 x i8> %some_q, ptr %some_to, i32 1, <16 x i1> %is_written)
  %some_after = add i32 %some_at, 16
  br label %next_some
end:
  ret void
}}
"""
"""`range(whole, first, count, least, most)` finds the minimum and maximum of a part and 0.
`quantize(from, to, count, filled, inverse, zero)` rounds `count` numbers, to the nearest and halves
up, and fills up to `filled` with the code of 0."""


class TileOperands(Protocol):
    """The narrow operands of a product. `functions` is the LLVM text of what they call."""

    @property
    def numbers(self) -> TileNumbers: ...
    @property
    def functions(self) -> str: ...

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        """Emits what comes before the first number is rounded; `weights: (n,)` are the packed
        ones."""
        ...

    def round_numbers(self, source: Any, target: Any, count: int, size: int) -> None:
        """Emits the rounding of `count` float32 numbers from one address to narrow ones at another,
        filled up to `size` with the code of zero."""
        ...

    def value(self, total: Any, column: Any) -> Any:
        """Returns a column's sum in float32."""
        ...


class Bfloat16Operands:
    """Operands in bfloat16, whose sums are float32 already."""

    functions = amx.ROUND

    def __init__(self, numbers: TileNumbers) -> None:
        self.numbers = numbers

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        """Does nothing: each number is rounded by itself."""

    def round_numbers(self, source: Any, target: Any, count: int, size: int) -> None:
        amx.round_numbers(source, target, count, size)

    def value(self, total: Any, column: Any) -> Any:
        return total


class Int8Operands:
    """The image is uint8 by its range in this inference, weights are int8 by column, sums are
    int32. Buffers of the kernel hold the scales."""

    functions = QUANTIZE

    def __init__(self, rows: RowsOfTiles, numbers: TileNumbers) -> None:
        self.numbers = numbers
        self._columns, self._sums_at = whole_columns(rows), tile_words(rows, numbers)
        self._scaling: Any = None
        self._factors: Any = None

    def prepare(self, product: Product, weights: Any, threads: int) -> None:
        self.measure(product.source, threads)
        self._scale_columns(weights)

    def measure(self, source: Any, threads: int) -> None:
        """Emits the range of the image `source`, float32 of any shape; each thread searches a
        part of it."""
        count = math.prod(int(extent) for extent in source.shape)
        parts = max(1, min(threads, count // 4096))
        share = -(-count // parts)
        whole = T.address_of(source[tuple(int64_constant(0) for _ in source.shape)])
        ends = whole_buffer(2 * parts, "float32")
        with loop(parts, parts) as part:
            size = tirx.min(int64_constant(share), int64_constant(count) - part * share)
            extent = [tirx.Cast("int32", each) for each in (part * share, size)]
            places = [T.address_of(ends[2 * part]), T.address_of(ends[2 * part + 1])]
            T.evaluate(tirx.call_extern("void", _RANGE, whole, *extent, *places))
        low, high = ends[0], ends[1]
        for part in range(1, parts):
            low, high = tirx.min(low, ends[2 * part]), tirx.max(high, ends[2 * part + 1])
        self._store(low, high)

    def _store(self, low: Any, high: Any) -> None:
        """Emits the scale; if all numbers are 0 any will do."""
        self._scaling = whole_buffer(3, "float32")
        T.buffer_store(self._scaling, (high - low) / _float(_LEVELS), [_SCALE])
        is_flat = self._scaling[_SCALE] <= _float(1e-30)
        T.buffer_store(
            self._scaling, tirx.Select(is_flat, _float(1), self._scaling[_SCALE]), [_SCALE]
        )
        T.buffer_store(self._scaling, _float(1) / self._scaling[_SCALE], [_INVERSE])
        zero = tirx.floor(_float(0.5) - low * self._scaling[_INVERSE])
        T.buffer_store(self._scaling, zero, [_ZERO])

    def round_numbers(self, source: Any, target: Any, count: int, size: int) -> None:
        sizes = [tirx.const(number, "int32") for number in (count, size)]
        scaling = [self._scaling[_INVERSE], self._scaling[_ZERO]]
        T.evaluate(tirx.call_extern("void", _QUANTIZE, source, target, *sizes, *scaling))

    def _scale_columns(self, weights: Any) -> None:
        """Emits the factor and the summand for the sums of each column, (2 * columns,) float32.
        `weights: (words,) int32` end with the column sums and the bits of the scales."""
        self._factors = whole_buffer(2 * self._columns, "float32")
        with (
            T.serial(int64_constant(self._columns // COLUMNS)) as tile,
            T.vectorized(int64_constant(COLUMNS)) as lane,
        ):
            column = tile * COLUMNS + lane
            scale = tirx.reinterpret("float32", weights[self._sums_at + self._columns + column])
            factor = self._scaling[_SCALE] * scale
            sums = tirx.Cast("float32", weights[self._sums_at + column])
            T.buffer_store(self._factors, factor, [column])
            less = -self._scaling[_ZERO] * sums * factor
            T.buffer_store(self._factors, less, [self._columns + column])

    def value(self, total: Any, column: Any) -> Any:
        """Returns a column's sum; `total` holds the bits of an int32."""
        whole = tirx.Cast("float32", tirx.reinterpret("int32", total))
        return whole * self._factors[column] + self._factors[self._columns + column]


def operands_of(rows: RowsOfTiles, numbers: TileNumbers) -> TileOperands:
    return Int8Operands(rows, numbers) if numbers.is_whole else Bfloat16Operands(numbers)


def _float(value: float) -> Any:
    return tirx.const(value, "float32")
