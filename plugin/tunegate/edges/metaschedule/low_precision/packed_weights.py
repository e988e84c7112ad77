"""Weights of a product as the tiles read them."""

from __future__ import annotations

import numpy as np

from tunegate.edges.metaschedule.low_precision.product_shape import COLUMNS, DEPTH, RowsOfTiles

_PAIR = 2


def bfloat16_bits(values: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers rounded to bfloat16: to the nearest, of two equally near ones to
    the even. They have to be finite."""
    bits = np.ascontiguousarray(values, "float32").view("uint32")
    rounded: np.ndarray = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.astype("uint16")


def packed(weights: np.ndarray, rows: RowsOfTiles) -> np.ndarray:
    """The weights, whose last two dimensions are depth and columns, in the order: tiles of columns,
    taps, tiles of depth, pairs of depth, columns, the two of a pair. What fills tiles is 0."""
    out = rows.shape.out_channels
    taps, depth = len(rows.taps), rows.tap_depth
    tiles = -(-out // COLUMNS)
    whole = np.zeros((taps, depth, tiles * COLUMNS), "uint16")
    given = bfloat16_bits(weights).reshape(taps, rows.tap_numbers, out)
    whole[:, : rows.tap_numbers, :out] = given
    cut = whole.reshape(taps, depth // DEPTH, DEPTH // _PAIR, _PAIR, tiles, COLUMNS)
    return np.ascontiguousarray(cut.transpose(4, 0, 1, 2, 5, 3)).reshape(-1)
