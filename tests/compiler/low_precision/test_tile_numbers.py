from __future__ import annotations

from tunegate.compiler.low_precision.tile_numbers import (
    BFLOAT16,
    BFLOAT16_VECTORS,
    INT8,
    INT8_VECTORS,
    NUMBERS,
)


def test_a_row_of_a_tile_has_64_bytes_of_either() -> None:
    assert (BFLOAT16.depth, INT8.depth) == (32, 64)
    assert {each.depth * each.each_bytes for each in (BFLOAT16, INT8)} == {64}


def test_vectors_come_after_tiles_and_fill_up_less() -> None:
    for first, *others in NUMBERS.values():
        assert first.is_tiled
        assert not any(each.is_tiled for each in others)
    assert (BFLOAT16_VECTORS.depth, INT8_VECTORS.depth) == (8, 16)
    assert INT8_VECTORS.in_a_word == INT8.in_a_word


def test_packed_weights_in_int8_are_words_of_four() -> None:
    assert (BFLOAT16.in_a_word, INT8.in_a_word) == (1, 4)
    assert (BFLOAT16.word_bytes, INT8.word_bytes) == (2, 4)
