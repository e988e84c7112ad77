"""Misfits of a value that is given for an input: its type, its shape, or NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunegate.edges.models.prepared import OPEN, Tensor


def misfit_of(value: Any, tensor: Tensor) -> str:
    """Returns the misfit of the first tensor in a value that does not fit, '' without one."""
    told = (array_misfit(array, tensor) for array in arrays_of(value))
    return next(filter(None, told), "")


def array_misfit(array: Any, tensor: Tensor) -> str:
    """Returns the misfit of an array for the input, '' without one."""
    wanted = np.dtype(tensor.dtype)
    if not (array.dtype == wanted or (wanted.kind == "O" and array.dtype.kind in "OU")):
        called = "texts" if wanted.kind == "O" else str(wanted)
        return f"type {array.dtype} instead of {called}"
    is_any = bool(tensor.form) and tensor.shape == (OPEN,)
    fits = is_any or (
        len(array.shape) == len(tensor.shape)
        and all(size in {OPEN, has} for size, has in zip(tensor.shape, array.shape, strict=True))
    )
    if fits:
        is_nothing = array.dtype.kind == "f" and array.size and bool(np.isnan(array).all())
        return "NaN alone, which tells nothing of the model" if is_nothing else ""
    shown = ", ".join("?" if size == OPEN else str(size) for size in tensor.shape)
    return f"shape {list(array.shape)} instead of [{shown}]"


def arrays_of(value: Any) -> Sequence[Any]:
    """The arrays in a value: none where it is absent."""
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)
