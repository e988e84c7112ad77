"""Saves and loads the value of an input in a file of ours: an array, a sequence of arrays, or
nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tunegate.models.narrow_types import is_narrow

SEQUENCE_SUFFIX = ".npz"
_ABSENT = "absent"
"""The name in an archive that stands for an absent optional value."""


def save_value(value: Any, stem: Path) -> Path:
    """Saves an array, a list of arrays or None without pickles, texts included. Returns the file:
    the stem with a suffix."""
    if value is None or isinstance(value, list):
        file = Path(f"{stem}{SEQUENCE_SUFFIX}")
        arrays = {_ABSENT: np.empty(0)} if value is None else dict(enumerate(map(_plain, value)))
        np.savez(file, allow_pickle=False, **{str(name): array for name, array in arrays.items()})
        return file
    file = Path(f"{stem}.npy")
    np.save(file, _plain(value), allow_pickle=False)
    return file


def load_value(file: Path, dtype: Any) -> Any:
    """Returns the saved value in the input's type."""
    if file.suffix != SEQUENCE_SUFFIX:
        return _restore_type(np.load(file, allow_pickle=False), dtype)
    with np.load(file, allow_pickle=False) as archive:
        if _ABSENT in archive:
            return None
        arrays = [archive[str(place)] for place in range(len(archive.files))]
    return [_restore_type(each, dtype) for each in arrays]


def _restore_type(array: Any, dtype: Any) -> Any:
    """Returns the array in its type: NumPy's files store foreign types as bytes of their width."""
    return array.view(dtype) if array.dtype.kind == "V" else array.astype(dtype, copy=False)


def _plain(array: Any) -> Any:
    if is_narrow(array.dtype):
        return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")
    return array.astype(str) if array.dtype.kind == "O" else array
