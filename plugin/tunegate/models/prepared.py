"""A model that `preparation.py` has made ready for a runtime or a compiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from tunegate.artifacts.inputs import InputForm
from tunegate.errors import UnsupportedModelError

OPEN = -1
"""The size of a dimension that a model leaves open, until a run gives it one."""


class Tensor(msgspec.Struct, frozen=True):
    """A model input or output; `dtype` is NumPy's name. Shape and type of a `form` are those of
    each of its tensors; where the model does not say them, a size is `OPEN`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    form: InputForm = ""

    @property
    def is_open(self) -> bool:
        """Returns whether some of its sizes are unknown."""
        return OPEN in self.shape


class Compilable(msgspec.Struct, frozen=True):
    """`fixed` has static input shapes: the model itself where it needed no change. `optimized` is
    what ONNX Runtime's basic optimizations make of it."""

    fixed: Path
    optimized: Path


@dataclass(frozen=True, kw_only=True)
class PreparedModel:
    """`original` is the user's model, byte for byte, and what other builds are held against. One
    with data files has them inside: in one file, and `weights` where that is too small.

    `inputs` are those of one inference, with the sizes that dynamic dimensions get. What compilers
    get is made when it is first asked for: `make_compilable` raises UnsupportedModelError.
    `calibration` are inputs to learn ranges of tensors from, for candidates that ask for them.
    """

    original: Path
    weights: Path | None
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    make_compilable: Callable[[], Compilable]
    calibration: Iterable[Mapping[str, Any]] = ()

    @property
    def fixed(self) -> Path:
        """The model with static shapes. Raises UnsupportedModelError where it has none."""
        return self._compilable().fixed

    @property
    def optimized(self) -> Path:
        """The same with its constants folded. Raises UnsupportedModelError."""
        return self._compilable().optimized

    def copy_to(self, file: Path) -> None:
        """Copies the user's model to this file, with its weights beside it."""
        shutil.copyfile(self.original, file)
        if self.weights is not None:
            _copy_weights(self.weights, file.parent)

    @property
    def unfixable(self) -> str:
        """Returns why there is no file for compilers; '' where there is one."""
        return self._made if isinstance(self._made, str) else ""

    def _compilable(self) -> Compilable:
        if isinstance(self._made, str):
            raise UnsupportedModelError(self._made)
        return self._made

    @cached_property
    def _made(self) -> Compilable | str:
        try:
            return self.make_compilable()
        except UnsupportedModelError as error:
            return str(error)


def _copy_weights(weights: Path, into: Path) -> None:
    """Puts a file with weights, which nobody changes any more, into another directory."""
    try:
        os.link(weights, into / weights.name)
    except OSError:  # there already, or another file system
        shutil.copyfile(weights, into / weights.name)
