"""Products and convolutions by the processor's dot products: TVM kernels with schedules by hand.

A convolution is a product whose rows are the positions of a padded image: each tap of its kernel
reads the same rows, moved. Operands are words of 32 bits: one float32, two bfloat16 or four int8.
"""

# mypy: disable-error-code="valid-type, untyped-decorator, no-untyped-def, no-untyped-call"
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm.script import tirx as T
from tvm.target.codegen import llvm_lookup_intrinsic_id

from tunegate.system.machine.cores import lacks_some

CPU = "cooperlake" if lacks_some(("amx_bf16",)) else "sapphirerapids"
"""LLVM's name of the least processor that has what is used here."""
TARGET = tvm.target.Target({"kind": "llvm", "mcpu": CPU})
ROWS, COLUMNS = 12, 32  # of a tile in vector registers; AMX has 32 x 32
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILES = 158, 0x1023, 18


class Case(NamedTuple):
    """A convolution of `height` x `width` positions; a product has one column of them."""

    name: str
    height: int
    width: int
    depth: int
    out: int
    taps: int = 1

    @property
    def padded_width(self) -> int:
        return self.width + self.taps - 1

    @property
    def rows(self) -> int:
        """The rows that are computed, in whole tiles of both kinds."""
        return -(-self.height * self.padded_width // 96) * 96

    @property
    def floating_operations(self) -> int:
        return 2 * self.height * self.width * self.depth * self.out * self.taps**2


class Dot(NamedTuple):
    """The way in which one kernel multiplies: `each` numbers of a word, summed as `total`. `flag`
    is what the processor needs, by Linux's name."""

    each: int
    total: str
    flag: str = "avx512f"
    word: str = "int32"
    tile: str = ""
    vector: str = ""


DOTS = {
    "float32, vectors": Dot(1, "float32", word="float32"),
    "bfloat16, vdpbf16ps": Dot(2, "float32", "avx512_bf16", vector="avx512bf16.dpbf16ps.512"),
    "bfloat16, AMX": Dot(2, "float32", "amx_bf16", tile="tdpbf16ps"),
    "int8, vpdpbusd": Dot(4, "int32", "avx512_vnni", vector="avx512.vpdpbusd.512"),
    "int8, AMX": Dot(4, "int32", "amx_int8", tile="tdpbusd"),
}


def dots_of_this_machine() -> dict[str, Dot]:
    """Those that the processor has, and whose tiles its kernel permits."""
    has = {name: dot for name, dot in DOTS.items() if not lacks_some((dot.flag,))}
    if any(dot.tile for dot in has.values()) and ctypes.CDLL(None).syscall(
        _ARCH_PRCTL, _REQUEST_PERMISSION, _TILES
    ):
        return {name: dot for name, dot in has.items() if not dot.tile}
    return has


def words(case: Case, dot: Dot) -> int:
    """The words of a row, whole tiles of 16."""
    return -(-case.depth // (dot.each * 16)) * 16


def product(case: Case, dot: Dot) -> Any:
    """The kernel: (tile configuration, rows, packed weights, out)."""
    made = _tiles if dot.tile else _vectors
    return tvm.compile(made(case, dot), target=TARGET)["main"]


def packed(weights: Any, case: Case, dot: Dot) -> Any:
    """Weights (taps, depth, out) of a 16- or 8-bit type, as the kernel reads them."""
    depth, taps, across = words(case, dot) * dot.each, case.taps**2, -(-case.out // COLUMNS)
    whole = np.zeros((taps, depth, across * COLUMNS), weights.dtype)
    whole[:, : case.depth, : case.out] = weights
    cut = whole.reshape(taps, depth // dot.each, dot.each, across, COLUMNS)
    cut = np.ascontiguousarray(cut.transpose(3, 0, 1, 4, 2)).view(dot.word)[..., 0]
    if not dot.tile:
        return cut
    halves = cut.reshape(across, taps, -1, 16, 2, 16)
    return np.ascontiguousarray(halves.transpose(0, 1, 2, 4, 3, 5))


def configuration() -> Any:
    """Eight tiles of 16 rows of 64 bytes."""
    made = np.zeros(64, "uint8")
    made[0] = 1
    made[16:32].view("uint16")[:] = 64
    made[48:56] = 16
    return made


def _vectors(case: Case, dot: Dot) -> Any:  # complexipy: ignore
    taps, step, wide = case.taps**2, case.taps, case.padded_width
    depth, rows, across = words(case, dot), case.rows, -(-case.out // COLUMNS)
    total, lanes, below = dot.total, f"{dot.total}x16", case.rows + (step - 1) * (wide + 1)
    word, source = dot.word, _instruction(dot)

    @T.prim_func(s_tir=True, private=False)
    def main(
        config: T.Buffer((64,), "uint8"),
        a: T.Buffer((below, depth), word),
        w: T.Buffer((across, taps, depth, COLUMNS), word),
        c: T.Buffer((rows, across * COLUMNS), total),
    ):
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        acc = T.alloc_buffer((ROWS, COLUMNS), total, scope="local")
        for n in T.serial(across, annotations={"pragma_import_llvm": source}):
            for m in T.serial(rows // ROWS):
                for i in T.unroll(ROWS):
                    for j in T.unroll(2):
                        acc[i, T.ramp(j * 16, 1, 16)] = T.broadcast(T.Cast(total, 0), 16)
                for t in T.serial(taps):
                    for k in T.serial(depth):
                        for i in T.unroll(ROWS):
                            for j in T.unroll(2):
                                acc[i, T.ramp(j * 16, 1, 16)] = T.call_extern(
                                    lanes,
                                    "dot",
                                    acc[i, T.ramp(j * 16, 1, 16)],
                                    T.broadcast(
                                        a[m * ROWS + i + t // step * wide + t % step, k], 16
                                    ),
                                    w[n, t, k, T.ramp(j * 16, 1, 16)],
                                )
                for i in T.unroll(ROWS):
                    for j in T.unroll(2):
                        c[m * ROWS + i, T.ramp(n * COLUMNS + j * 16, 1, 16)] = acc[
                            i, T.ramp(j * 16, 1, 16)
                        ]

    return main


def _instruction(dot: Dot) -> str:
    """LLVM's text of `dot(sum, words, words)`. TVM's own bfloat16 is lowered to float32 before
    the code generator, so an intrinsic with bfloat16 operands cannot be called from TIR."""
    total = "float" if dot.total == "float32" else "i32"
    word = "float" if dot.word == "float32" else "i32"
    inner = "<32 x bfloat>" if dot.each == 2 else "<64 x i8>" if dot.each == 4 else "<16 x float>"
    name = f"llvm.x86.{dot.vector}" if dot.vector else "llvm.fmuladd.v16f32"
    sums, operands = f"<16 x {total}>", f"<16 x {word}>"
    if dot.each == 1:
        order, signature = f"{sums} %a, {sums} %b, {sums} %c", f"{sums}, {sums}, {sums}"
        body = f"%r = call {sums} @{name}({order})"
    else:
        signature = f"{sums}, {inner}, {inner}"
        body = (
            f"%x = bitcast {operands} %a to {inner}\n%y = bitcast {operands} %b to {inner}\n"
            f"%r = call {sums} @{name}({sums} %c, {inner} %x, {inner} %y)"
        )
    return (
        f"declare {sums} @{name}({signature})\n"
        f"define {sums} @dot({sums} %c, {operands} %a, {operands} %b) #0 {{\n{body}\n"
        f"ret {sums} %r\n}}\n"
        f'attributes #0 = {{ alwaysinline nounwind "target-cpu"="{CPU}" }}\n'
    )


def _tiles(case: Case, dot: Dot) -> Any:
    taps, step, wide = case.taps**2, case.taps, case.padded_width
    depth, rows, across = words(case, dot), case.rows, -(-case.out // COLUMNS)
    total, below, multiply = dot.total, case.rows + (step - 1) * (wide + 1), dot.tile
    from_row, to_row = T.int64(depth * 4), T.int64(across * COLUMNS * 4)

    @T.prim_func(s_tir=True, private=False)
    def main(
        config: T.Buffer((64,), "uint8"),
        a: T.Buffer((below, depth), "int32"),
        w: T.Buffer((across, taps, depth // 16, 2, 16, 16), "int32"),
        c: T.Buffer((rows, across * COLUMNS), total),
    ):
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        T.evaluate(_call("ldtilecfg", config.access_ptr("r")))
        for n, m in T.grid(across, rows // 32):
            for i in T.unroll(4):
                T.evaluate(_call("tilezero", _tile(i)))
            for t, k in T.grid(taps, depth // 16):
                for i in T.unroll(2):
                    row = T.meta_var(m * 32 + i * 16 + t // step * wide + t % step)
                    read = T.meta_var(T.address_of(a[row, k * 16]))
                    T.evaluate(_call("tileloadd64", _tile(i + 4), read, from_row))
                for i in T.unroll(2):
                    weights = T.meta_var(T.address_of(w[n, t, k, i, 0, 0]))
                    T.evaluate(_call("tileloadd64", _tile(i + 6), weights, T.int64(64)))
                for i in T.unroll(4):
                    T.evaluate(_call(multiply, _tile(i), _tile(i // 2 + 4), _tile(i % 2 + 6)))
            for i in T.unroll(4):
                out = T.meta_var(T.address_of(c[m * 32 + i // 2 * 16, n * 32 + i % 2 * 16]))
                T.evaluate(_call("tilestored64", _tile(i), out, to_row))
        T.evaluate(_call("tilerelease"))

    return main


def _call(name: str, *operands: Any) -> Any:
    intrinsic = llvm_lookup_intrinsic_id(f"llvm.x86.{name}")
    return T.call_llvm_intrin(T.uint32(intrinsic), *operands, dtype="void")


def _tile(number: Any) -> Any:
    return T.Cast("int8", number)


def rows_of(case: Case, dot: Dot) -> Any:
    """The kernel (float32 image, rows) that rounds the image to the operands, inside of a border
    that stays zero. int8 is 0 to 255, for 0 to 1."""
    height, width, depth = case.height, case.width, case.depth
    edge, wide, step = case.taps // 2, case.padded_width, case.taps
    below, kind = case.rows + (step - 1) * (wide + 1), {1: "float32", 2: "uint16", 4: "uint8"}
    number, all_of_it = kind[dot.each], words(case, dot) * dot.each
    bits = lambda x: T.reinterpret(x, dtype="uint32")

    def rounded(x: Any) -> Any:
        if dot.each == 1:
            return x
        if dot.each == 4:
            return T.Cast("uint8", T.Cast("int32", x * T.float32(255) + T.float32(0.5)))
        up = T.uint32(0x7FFF) + ((bits(x) >> T.uint32(16)) & T.uint32(1))
        return T.Cast("uint16", (bits(x) + up) >> T.uint32(16))

    @T.prim_func(s_tir=True, private=False)
    def main(
        x: T.Buffer((height * width, depth), "float32"),
        a: T.Buffer((below, all_of_it), number),
    ):
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        for h, w in T.grid(height, width):
            for k in T.serial(depth):
                a[(h + edge) * wide + w + edge, k] = rounded(x[h * width + w, k])

    return tvm.compile(main, target=TARGET)["main"]
