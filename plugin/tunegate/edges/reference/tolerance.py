"""How far two results of the same computation may lie apart, by dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

_RELATIVE = {"float64": 1e-9, "float32": 1e-3, "float16": 3e-2, "bfloat16": 1e-1}


def tolerance(dtype: str) -> float:
    """Allowed error relative to the largest magnitude of the expected output.

    Reordered sums of a deep network in float32 differ by about 1e-5; a wrong schedule by far more.
    """
    return _RELATIVE.get(dtype, 0.0)


def differs(got: Any, expected: Any) -> str:
    """Why `got` is not the `expected` array, in words; '' when it is."""
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    wide_got, wide = got.astype("float64"), expected.astype("float64")
    if np.any(np.isfinite(wide) & ~np.isfinite(wide_got)):
        return "not a number where one is expected"
    absolute, relative = errors(wide_got, wide)
    if relative > tolerance(str(expected.dtype)):
        return f"off by {absolute:.3g}, {relative:.2g} of the largest output"
    return ""


def errors(got: Any, expected: Any) -> tuple[float, float]:
    """Largest absolute error, and the same relative to the largest expected magnitude."""
    if expected.size == 0:
        return 0.0, 0.0
    with np.errstate(invalid="ignore"):
        difference = np.abs(got - expected)
    absolute = float(np.max(np.where(np.isfinite(difference), difference, 0.0)))
    finite = expected[np.isfinite(expected)]
    scale = float(np.max(np.abs(finite))) if finite.size else 0.0
    return absolute, absolute / scale if scale else absolute
