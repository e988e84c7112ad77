"""A model that `preparation.py` has made ready for a runtime or a compiler."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Tensor(msgspec.Struct, frozen=True):
    """A model input or output; `dtype` is NumPy's name."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class PreparedModel(msgspec.Struct, frozen=True):
    """`fixed` has static input shapes and is the reference: the model itself where it needed no
    change. `optimized` goes to the compiler."""

    fixed: Path
    optimized: Path
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
