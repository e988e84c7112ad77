"""The places of operands, tried with NumPy: what tiles would read is multiplied one row after the
other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tunegate.compiler.low_precision.product import DEPTH, Extents, ProductShape, RowsOfTiles


@st.composite
def shapes(draw: st.DrawFn) -> ProductShape:
    small = st.integers(1, 3)
    window, stride, dilation = (Extents(draw(small), draw(small)) for _ in range(3))
    padding = Extents(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    result = Extents(draw(st.integers(1, 5)), draw(st.integers(1, 5)))
    cut = Extents(draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    source = Extents(
        *(
            max(
                1,
                (result[n] - 1) * stride[n]
                + (window[n] - 1) * dilation[n]
                + 1
                - padding[n]
                - cut[n],
            )
            for n in range(2)
        )
    )
    return ProductShape(
        images=draw(st.integers(1, 2)),
        source=source,
        channels=draw(st.sampled_from((1, 3, 32, 33))),
        result=result,
        out_channels=4,
        window=window,
        stride=stride,
        dilation=dilation,
        padding=padding,
    )


def padded(image: np.ndarray, shape: ProductShape) -> np.ndarray:
    """The image inside of as much zero as any window reaches."""
    found = np.zeros((shape.images, 40, 40, shape.channels))
    top, left = shape.padding
    found[:, top : top + shape.source.height, left : left + shape.source.width] = image
    return found


def convolved(image: np.ndarray, weights: np.ndarray, shape: ProductShape) -> np.ndarray:
    whole = padded(image, shape)
    found = np.zeros((shape.images, *shape.result, shape.out_channels))
    for y, x in np.ndindex(*shape.result):
        for r, c in np.ndindex(*shape.window):
            row = y * shape.stride.height + r * shape.dilation.height
            column = x * shape.stride.width + c * shape.dilation.width
            found[:, y, x] += whole[:, row, column] @ weights[r, c]
    return found


def read_by_tiles(image: np.ndarray, weights: np.ndarray, shape: ProductShape) -> np.ndarray:
    rows = RowsOfTiles(shape)
    whole = padded(image, shape)
    places = np.full(rows.size(rows.row_count) + (shape.images - 1) * rows.image, np.nan)
    width = rows.line // rows.pixel
    for number in range(shape.images):
        for phase, remainder in enumerate(rows.phases):
            for line in range(rows.phase_height):
                pixels = np.zeros((width, rows.pixel))
                y = line * shape.stride.height + remainder
                pixels[:, : shape.channels] = whole[number, y, :width]
                begin = number * rows.image + (phase * rows.phase_height + line) * rows.line
                places[begin : begin + rows.line] = pixels.reshape(-1)
    places[shape.images * rows.image :][:DEPTH] = 0
    factors = np.zeros((len(rows.taps), rows.tap_depth, shape.out_channels))
    factors[:, : rows.tap_numbers] = weights.reshape(len(rows.taps), rows.tap_numbers, -1)
    found = np.zeros((shape.images, *shape.result, shape.out_channels))
    for number, y, x in np.ndindex(shape.images, *shape.result):
        begin = number * rows.image + (y * rows.pitch + x) * rows.step
        for tap, moved in enumerate(rows.taps):
            found[number, y, x] += places[begin + moved :][: rows.tap_depth] @ factors[tap]
    return found


@settings(max_examples=60, deadline=None)
@given(shapes())
def test_what_tiles_read_is_the_convolution(shape: ProductShape) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(-4, 5, (shape.images, *shape.source, shape.channels)).astype(float)
    weights = rng.integers(-4, 5, (*shape.window, shape.channels, shape.out_channels)).astype(float)
    found = read_by_tiles(image, weights, shape)
    np.testing.assert_array_equal(found, convolved(image, weights, shape))


def test_a_row_of_the_window_is_one_tap_where_its_pixels_are_neighbours() -> None:
    extents = Extents(8, 8)
    near = RowsOfTiles(ProductShape(1, extents, 3, extents, 4, window=Extents(3, 3)))
    far = RowsOfTiles(near.shape._replace(dilation=Extents(1, 2)))
    assert (len(near.taps), near.tap_depth, near.pixel) == (3, 32, 3)
    assert (len(far.taps), far.tap_depth, far.pixel) == (9, 32, 32)


def test_rows_that_no_tap_looks_at_are_not_kept() -> None:
    rows = RowsOfTiles(ProductShape(1, Extents(8, 8), 3, Extents(4, 4), 4, stride=Extents(2, 2)))
    assert rows.phases == (0,)
