from __future__ import annotations

from tunegate.compiler.low_precision.lower_kernels import is_faster, tiles_ns
from tunegate.compiler.low_precision.product import Extents, ProductShape
from tunegate.compiler.low_precision.tile_numbers import BFLOAT16_VECTORS, INT8, INT8_VECTORS


def square(size: int, channels: int, out: int, window: int = 1) -> ProductShape:
    extents = Extents(size, size)
    return ProductShape(1, extents, channels, extents, out, window=Extents(window, window))


def test_the_estimate_is_near_what_was_measured() -> None:
    measured_us = {
        square(28, 128, 128, 3): 146,
        square(28, 256, 512): 181,
        ProductShape(1, Extents(128, 1), 768, Extents(128, 1), 768): 119,
    }
    for shape, microseconds in measured_us.items():
        assert 0.6 < tiles_ns(shape, 1) / 1e3 / microseconds < 1.6


def test_the_estimate_of_int8_is_near_what_was_measured() -> None:
    measured_us = {square(28, 128, 128, 3): 75, square(28, 256, 512): 206, square(7, 512, 512): 13}
    for shape, microseconds in measured_us.items():
        assert 0.6 < tiles_ns(shape, 1, INT8) / 1e3 / microseconds < 1.6


def test_the_estimate_of_vectors_is_near_what_was_measured() -> None:
    measured_us = {
        square(28, 128, 128, 3): 443,
        square(28, 256, 512): 551,
        square(14, 256, 256, 3): 463,
        square(56, 64, 64, 3): 416,
    }
    for shape, microseconds in measured_us.items():
        assert 0.6 < tiles_ns(shape, 1, INT8_VECTORS) / 1e3 / microseconds < 1.6


def test_the_estimate_of_bfloat16_by_vectors_is_near_what_was_measured() -> None:
    measured_us = {
        square(28, 128, 128, 3): 1106,
        square(28, 256, 512): 965,
        square(14, 256, 256, 3): 1186,
        ProductShape(1, Extents(128, 1), 768, Extents(128, 1), 768): 709,
    }
    for shape, microseconds in measured_us.items():
        assert 0.6 < tiles_ns(shape, 1, BFLOAT16_VECTORS) / 1e3 / microseconds < 1.6


def test_threads_share_the_work() -> None:
    assert tiles_ns(square(28, 128, 128, 3), 4) < tiles_ns(square(28, 128, 128, 3), 1) / 3


def test_a_kernel_that_is_quick_in_float32_stays_there() -> None:
    shape = square(14, 256, 256)
    milliseconds = tiles_ns(shape, 1) / 1e6
    assert is_faster(shape, 1, 2 * milliseconds)
    assert not is_faster(shape, 1, 1.05 * milliseconds)


def test_without_a_time_float32_is_taken_at_its_best() -> None:
    assert is_faster(square(14, 256, 256), 1, None)
    assert not is_faster(square(1, 8, 2), 1, None)
