from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.compiler.schedules.product_tiles import register_tile
from tunegate.tune.prior import VectorRegisters

AVX512, AVX2, NEON = VectorRegisters(16, 32), VectorRegisters(8, 16), VectorRegisters(4, 32)


def test_sums_fill_the_registers_and_leave_some_for_what_is_multiplied() -> None:
    assert register_tile([1, 56, 48, 64], [0, 1, 2], AVX2) == (2, 6, 16)
    assert register_tile([1, 56, 48, 64], [0, 1, 2], AVX512) == (2, 6, 64)


def test_where_a_width_has_no_such_divisor_fewer_channels_are_taken() -> None:
    assert register_tile([1, 7, 7, 512], [2], AVX2) == (2, 7, 8)


def test_numbers_that_need_registers_of_their_own_have_them() -> None:
    assert register_tile([1, 2, 96, 88], [2], AVX2) == (2, 6, 8)
    assert register_tile([1, 2, 96, 16], [2], AVX512) == (2, 24, 16)


def test_a_prime_width_leaves_it_to_the_height() -> None:
    assert register_tile([1, 6, 61, 64], [1, 2], AVX2) == (1, 6, 16)


def test_channels_that_fill_no_register_have_no_tile() -> None:
    assert register_tile([1, 56, 56, 12], [2], AVX2) is None


@given(
    st.lists(st.integers(1, 200), min_size=2, max_size=4),
    st.sampled_from([AVX512, AVX2, NEON]),
)
def test_it_divides_what_it_tiles_and_its_sums_fit(
    extents: list[int], has: VectorRegisters
) -> None:
    axes = list(range(len(extents) - 1))
    tile = register_tile(extents, axes, has)
    assert (tile is None) == (extents[-1] % has.lanes != 0)
    if tile is not None:
        assert tile.axis in axes
        assert extents[tile.axis] % tile.columns == extents[-1] % tile.lanes == 0
        assert tile.lanes % has.lanes == 0
        assert tile.columns * tile.lanes // has.lanes < has.count
