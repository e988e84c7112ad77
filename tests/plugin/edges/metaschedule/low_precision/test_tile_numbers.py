from __future__ import annotations

from tunegate.edges.metaschedule.low_precision.tile_numbers import BFLOAT16, INT8, NUMBERS


def test_a_row_of_a_tile_has_64_bytes_of_either() -> None:
    assert (BFLOAT16.depth, INT8.depth) == (32, 64)
    assert {each.depth * each.each_bytes for each in NUMBERS.values()} == {64}


def test_packed_weights_in_int8_are_words_of_four() -> None:
    assert (BFLOAT16.in_a_word, INT8.in_a_word) == (1, 4)
