"""What decisions make of a loop nest, in words that are the same for every task."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tunegate.tune.loop_nest import Decided, LoopNest
from tunegate.tune.prior import (
    NEST_COLUMNS,
    Sketch,
    TaskExperience,
    VectorRegisters,
    innermost,
    nest_columns,
)

ORDER = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (1, 2), (2, 1), (0, 3), (1, 3))
"""The loops of a product: rows, columns, and what is summed."""
GROUP_VECTORS = NEST_COLUMNS - 4
AVX512, AVX2 = VectorRegisters(), VectorRegisters(8, 16)
SKETCH = Sketch("direct", LoopNest(ORDER, copied_at=1, unrolled_by=3, unrolls=(0, 16, 64, 512)))


def decided(lanes: int, rows: int = 4, unroll: int = 1) -> Decided:
    return ((2, 1, 8, rows), (4, 1, 64 // lanes, lanes), (32, 8), (unroll,))


def experience() -> TaskExperience:
    """Wide innermost loops are fast."""
    rows = tuple(
        (0, 16.0 / lanes + 0.01 * rows, decided(lanes, rows))
        for lanes in (1, 2, 4, 8, 16)
        for rows in (1, 2, 3, 4, 5, 7)
    )
    return TaskExperience("product", (SKETCH,), rows)


def test_the_columns_are_the_sizes_of_the_loops() -> None:
    columns = nest_columns(SKETCH, decided(16))
    lanes, second, inner, middle, middle_last, outer, reduced_inner, reduced_outer, axis = columns[
        :9
    ]
    assert (lanes, second, inner) == (4, 2, 6)
    assert (middle, middle_last, outer) == (5, 2, 3)
    assert (reduced_inner, reduced_outer, axis) == (3, 5, 8)
    assert columns[9:11] == [1.0, 1.0]  # whole vectors of 256 bits, and of 512
    assert len(columns) == NEST_COLUMNS


def test_half_a_vector_is_told_from_a_whole_one() -> None:
    assert nest_columns(SKETCH, decided(8))[9:11] == [1.0, 0.0]
    assert nest_columns(SKETCH, decided(4))[9:11] == [0.0, 0.0]


def test_whether_the_innermost_loops_are_unrolled_is_seen() -> None:
    """32 statements: 4 rows of one vector, 8 times."""
    fits = 16
    assert nest_columns(SKETCH, decided(16, unroll=2))[fits] == 1.0
    assert nest_columns(SKETCH, decided(16, unroll=1))[fits] == 0.0


def test_without_a_loop_nest_nothing_is_known() -> None:
    columns = nest_columns(Sketch("direct", None), ((3,),))
    assert len(columns) == NEST_COLUMNS
    assert all(math.isnan(column) for column in columns)


def test_what_the_innermost_loops_do_is_what_makes_samples_alike() -> None:
    assert innermost(SKETCH, decided(16)) == ((4, 16),)
    assert innermost(SKETCH, decided(16, unroll=3)) == innermost(SKETCH, decided(16))
    assert innermost(Sketch("direct", None), ((3,),)) == ((3,),)


@given(st.integers(1, 64), st.integers(1, 64), st.integers(0, 3))
def test_every_sample_has_as_many_columns_and_none_unknown(
    lanes: int, rows: int, unroll: int
) -> None:
    columns = nest_columns(SKETCH, decided(lanes, rows, unroll)) if 64 % lanes == 0 else []
    assert len(columns) in {0, NEST_COLUMNS}
    assert all(math.isfinite(column) for column in columns)


def test_a_step_of_many_numbers_is_a_wider_innermost_loop() -> None:
    wide = ((2, 1, 2, 4), (1, 2, 1, 16), (4, 8), (1,))
    narrow = ((2, 1, 2, 4), (1, 2, 1, 2), (4, 8), (1,))
    vectors = Sketch("group-vectors", SKETCH.nest, lanes=8)
    columns = zip(nest_columns(vectors, narrow), nest_columns(SKETCH, wide), strict=True)
    differ = [place for place, (one, other) in enumerate(columns) if one != other]
    assert differ == [GROUP_VECTORS]


def test_a_tile_takes_the_registers_that_hold_its_sums_and_fills_a_share_of_them() -> None:
    """56 numbers in a row take as many registers of 16 as 64 do."""

    def registers(lanes: int, rows: int, has: VectorRegisters) -> tuple[float, float]:
        decisions = ((2, 1, 8, rows), (4, 1, 1, lanes), (32, 8), (1,))
        sketch = msgspec.structs.replace(SKETCH, registers=has)
        power, filled, _ = nest_columns(sketch, decisions)[-3:]
        return round(2**power, 9), filled

    assert registers(64, 4, AVX512) == (16 / 32, 1.0)
    assert registers(56, 4, AVX512) == (16 / 32, 56 / 64)
    assert registers(14, 8, AVX512) == (8 / 32, 14 / 16)
    assert registers(1, 1, AVX512) == (1 / 32, 1 / 16)
    assert registers(64, 4, AVX2) == (32 / 16, 1.0)
    assert registers(14, 8, AVX2) == (16 / 16, 14 / 16)


def test_the_same_tile_is_another_one_in_other_registers() -> None:
    one, other = (
        nest_columns(msgspec.structs.replace(SKETCH, registers=has), decided(8))
        for has in (AVX512, AVX2)
    )
    assert one[-1] == 4
    assert other[-1] == 3
    assert one[:9] == other[:9]


def test_a_line_says_of_which_layer_it_is_and_where_it_was_measured() -> None:
    line = msgspec.structs.replace(
        experience(),
        kind="product",
        layer="0123456789abcdef",
        workload="w",
        models=("a.onnx", "b.onnx"),
        device="some cpu",
        threads=1,
    )
    assert msgspec.json.decode(msgspec.json.encode(line), type=TaskExperience) == line


def test_a_line_of_older_data_says_no_layer_and_no_device() -> None:
    line = msgspec.json.decode(b'{"name":"n","sketches":[],"rows":[]}', type=TaskExperience)
    assert (line.kind, line.layer, line.models, line.device, line.threads) == ("", "", (), "", 0)
