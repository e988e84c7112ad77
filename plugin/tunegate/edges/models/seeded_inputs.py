"""Inputs for a model that are the same everywhere: one seed, one set of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np


class TensorLike(Protocol):
    """What is needed of an input's description; `dtype` is NumPy's name."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


def seeded_inputs(tensors: Iterable[TensorLike], seed: int) -> dict[str, Any]:
    """Standard normal floats, fair booleans, integers 0 or 1, valid indices in any table, and the
    text "a"."""
    random = np.random.default_rng(seed)
    return {t.name: _values(random, t.shape, np.dtype(t.dtype)) for t in tensors}


def _values(random: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if dtype.kind == "O":
        return np.full(shape, "a", dtype)
    if dtype.kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)
