"""The sizes of what a native program works on."""

from __future__ import annotations

import pytest

from tunegate_whole_model.native.program import NativeBuffer, align_up
from tunegate_whole_model.stages.parts import Span


@pytest.mark.parametrize(("size_bytes", "place"), [(0, 0), (1, 64), (64, 64), (65, 128)])
def test_buffers_begin_where_kernels_expect_them(size_bytes: int, place: int) -> None:
    assert align_up(size_bytes) == place


@pytest.mark.parametrize(("shape", "bits", "size"), [((), 64, 8), ((2, 3), 32, 24), ((5,), 1, 5)])
def test_a_buffer_is_as_large_as_its_elements(shape: tuple[int, ...], bits: int, size: int) -> None:
    assert NativeBuffer("arena", 0, shape, 2, bits).size_bytes == size


def test_an_input_has_no_bytes_of_the_arena() -> None:
    assert NativeBuffer("input", 3, (8,), 2, 32).span == Span("input", 3, 4)
    assert NativeBuffer("arena", 64, (8,), 2, 32).span == Span("arena", 64, 96)
