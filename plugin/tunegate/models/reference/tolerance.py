"""Tolerances between two results of one computation, by dtype."""

from collections.abc import Iterator
from typing import Any

import numpy as np

_RELATIVE = {
    "float64": 1e-9,
    "float32": 1e-3,
    "float16": 3e-2,
    "bfloat16": 1e-1,
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz"), 2**-3),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz"), 2**-2),
    "float4_e2m1fn": 1 / 3,
}
"""The narrowest types may differ by a step, if the sum lies between two values."""


def tolerance(dtype: str) -> float:
    """Returns the allowed error relative to the largest magnitude of the expected output.

    Reordered float32 sums of a deep network differ by about 1e-5; a wrong schedule by far more.
    """
    return _RELATIVE.get(dtype, 0.0)


def differs(actual: Any, expected: Any, allowed: float = 0.0) -> str:
    """Returns in words why `actual` is not the `expected` array, '' if it is. `allowed` replaces
    the usual tolerance of the type if it is larger."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    if not is_numeric(expected) or not is_numeric(actual):
        return _other_texts(actual, expected)
    misplaced = (_nonfinite_mismatch(*pieces) for pieces in _wide_pieces(actual, expected))
    if problem := next(filter(None, misplaced), ""):
        return problem
    absolute, relative = errors(actual, expected)
    if relative > max(allowed, tolerance(str(expected.dtype))):
        return f"off by {absolute:.3g}, {relative:.2g} of the largest output"
    return ""


def other_dtype(actual: Any, expected: Any) -> str:
    """Returns in words that `actual` has another dtype than `expected`, '' if not. All texts have
    one dtype, however NumPy stores them."""
    if actual.dtype == expected.dtype or not (is_numeric(actual) or is_numeric(expected)):
        return ""
    return f"{actual.dtype} instead of {expected.dtype}"


def is_numeric(array: Any) -> bool:
    """Returns whether the array has no strings."""
    return array.dtype.kind not in "OUS"


def _other_texts(actual: Any, expected: Any) -> str:
    """Returns the first differing text, '' if all are equal."""
    pairs = zip(actual.ravel().tolist(), expected.ravel().tolist(), strict=True)
    for ours, theirs in pairs:
        if ours != theirs:
            return f"{ours!r} instead of {theirs!r}"
    return ""


def _nonfinite_mismatch(actual: Any, expected: Any) -> str:
    """Returns why NaN and infinity are in different places, or infinity has another sign; '' if
    not."""
    is_number, should_be = np.isfinite(actual), np.isfinite(expected)
    if np.any(should_be & ~is_number):
        return "not a number where one is expected"
    if np.any(is_number & ~should_be):
        return "a number where NaN or infinity is expected"
    others = ~is_number
    if not np.array_equal(actual[others], expected[others], equal_nan=True):
        return "another one of NaN, infinity and -infinity than is expected"
    return ""


def errors(actual: Any, expected: Any) -> tuple[float, float]:
    """Returns the largest absolute error, and the same relative to the largest expected
    magnitude."""
    absolute = scale = 0.0
    for ours, theirs in _wide_pieces(actual, expected):
        with np.errstate(invalid="ignore"):
            difference = np.abs(ours - theirs)
        absolute = max(absolute, _largest_finite(difference))
        scale = max(scale, _largest_finite(np.abs(theirs)))
    return absolute, absolute / scale if scale else absolute


def _largest_finite(numbers: Any) -> float:
    return float(np.max(numbers, initial=0.0, where=np.isfinite(numbers)))


_PIECE = 2**20


def _wide_pieces(actual: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the numbers of both in float64, piece by piece: whole outputs of a gigabyte would take
    ten in that type."""
    ours, theirs = actual.reshape(-1), expected.reshape(-1)
    for start in range(0, theirs.size, _PIECE):
        piece = slice(start, start + _PIECE)
        yield ours[piece].astype("float64"), theirs[piece].astype("float64")
