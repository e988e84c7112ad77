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
    mismatches = (_nonfinite_mismatch(*pieces) for pieces in _pieces(actual, expected))
    if mismatch := next(filter(None, mismatches), ""):
        return mismatch
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
    for ours, theirs in zip(actual.ravel().tolist(), expected.ravel().tolist(), strict=True):
        if ours != theirs:
            return f"{ours!r} instead of {theirs!r}"
    return ""


def _nonfinite_mismatch(actual: Any, expected: Any) -> str:
    """Returns why NaN and infinity are in different places, or infinity has another sign; '' if
    not."""
    actual, expected = actual.astype("float64"), expected.astype("float64")
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
    for ours, theirs in _pieces(actual, expected):
        absolute = max(absolute, _largest_finite(_distances(ours, theirs)))
        scale = max(scale, _largest_finite(np.abs(theirs.astype("float64"))))
    return absolute, absolute / scale if scale else absolute


def _distances(actual: Any, expected: Any) -> Any:
    """Returns the absolute differences, exact ones of integers: two integers beyond 2**53 may be
    one number in float64."""
    if actual.dtype == expected.dtype and actual.dtype.kind in "iu":
        distances = np.maximum(actual, expected) - np.minimum(actual, expected)
        return distances.astype(f"u{actual.dtype.itemsize}")  # signed ones overflow
    with np.errstate(invalid="ignore"):
        return np.abs(actual.astype("float64") - expected.astype("float64"))


def _largest_finite(numbers: Any) -> float:
    return float(np.max(numbers, initial=0.0, where=np.isfinite(numbers)))


_PIECE = 2**20


def _pieces(actual: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """Yields both piece by piece: whole outputs of a gigabyte would take ten in float64."""
    ours, theirs = actual.reshape(-1), expected.reshape(-1)
    for start in range(0, theirs.size, _PIECE):
        piece = slice(start, start + _PIECE)
        yield ours[piece], theirs[piece]
