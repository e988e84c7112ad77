"""A model that `preparation.py` prepared for a runtime or a compiler."""

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

NOT_LOADED = "ONNX Runtime does not load it"
"""Nothing runs such a model: its reference outputs would be ONNX Runtime's."""

OPEN = -1
"""The size of an open dimension, until a run gives it one."""


class Tensor(msgspec.Struct, frozen=True):
    """A model input or output; `dtype` is NumPy's name. With a `form`, shape and type are those of
    each of its tensors; a size that the model does not state is `OPEN`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    form: InputForm = ""

    @property
    def is_open(self) -> bool:
        """Returns whether some of its sizes are unknown."""
        return OPEN in self.shape


class Compilable(msgspec.Struct, frozen=True):
    """`fixed` has static input shapes: the model itself if it needed no change. `optimized` is the
    result of ONNX Runtime's basic optimizations."""

    fixed: Path
    optimized: Path


@dataclass(frozen=True, kw_only=True)
class PreparedModel:
    """`original` is the user's model, byte for byte, which other builds are compared with. Data
    files are merged into it, or into `weights` if one file cannot hold them.

    `inputs` are those of one inference, with sizes for dynamic dimensions. The compiler's files are
    made on demand: `make_compilable` raises UnsupportedModelError. `calibration` are inputs to
    learn tensor ranges from, for candidates that need them; `custom_operators` are those of
    libraries.
    """

    original: Path
    weights: Path | None
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    make_compilable: Callable[[], Compilable]
    calibration: Iterable[Mapping[str, Any]] = ()
    custom_operators: tuple[str, ...] = ()

    @property
    def fixed(self) -> Path:
        """The model with static shapes. Raises UnsupportedModelError if there is none."""
        return self._compilable().fixed

    @property
    def optimized(self) -> Path:
        """The model with static shapes and folded constants. Raises UnsupportedModelError."""
        return self._compilable().optimized

    def copy_to(self, file: Path) -> None:
        """Copies the user's model to this file, with its weights beside it."""
        shutil.copyfile(self.original, file)
        if self.weights is not None:
            _copy_weights(self.weights, file.parent)

    @property
    def unfixable(self) -> str:
        """The reason why there is no file for compilers, '' if there is one."""
        return self._compilable_or_problem if isinstance(self._compilable_or_problem, str) else ""

    def _compilable(self) -> Compilable:
        if isinstance(self._compilable_or_problem, str):
            raise UnsupportedModelError(self._compilable_or_problem)
        return self._compilable_or_problem

    @cached_property
    def _compilable_or_problem(self) -> Compilable | str:
        try:
            return self.make_compilable()
        except UnsupportedModelError as error:
            return str(error)


def _copy_weights(weights: Path, into: Path) -> None:
    """Links or copies a weights file, which no longer changes, into another directory."""
    try:
        os.link(weights, into / weights.name)
    except OSError:  # there already, or another file system
        shutil.copyfile(weights, into / weights.name)
