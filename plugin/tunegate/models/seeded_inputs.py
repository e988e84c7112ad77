"""Inputs for a model that are the same everywhere: one seed gives one set of arrays."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, assert_never

import numpy as np

from tunegate.artifacts import inputs
from tunegate.models.narrow_types import dtype_named, is_narrow, kind_of


class TensorLike(Protocol):
    """An input of a graph; `dtype` is NumPy's name."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class RuledTensor(TensorLike, Protocol):
    """An input with its values. Without a `rule` floats are standard normal, booleans fair,
    integers 0 or 1, and texts "a". With a `form`, the `rule` applies to each of its tensors."""

    @property
    def rule(self) -> inputs.InputRule | None: ...
    @property
    def form(self) -> inputs.InputForm: ...


def seeded_inputs(
    tensors: Iterable[RuledTensor], seed: int, case: int | None = None
) -> dict[str, Any]:
    """Returns the values of `seed` by the inputs' rules: an array for a tensor, a list of arrays
    for a sequence, None for an absent value. Inputs with several cases all take the same one:
    `case`, or one chosen by the seed."""
    random = np.random.default_rng(seed)
    chosen = seed if case is None else case
    return {tensor.name: _values(random, tensor, chosen) for tensor in tensors}


def checked_feeds(tensors: Sequence[RuledTensor], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Returns the inputs that a build must compute correctly: those of each seed, and each given
    case."""
    number = max(len(seeds), cases_of(tensors))
    return [
        seeded_inputs(tensors, seed, case)
        for case, seed in zip(range(number), itertools.cycle(seeds), strict=False)
    ]


def cases_of(tensors: Iterable[RuledTensor]) -> int:
    """Returns the number of cases given for the inputs, at least 1."""
    values = [tensor.rule.values for tensor in tensors if tensor.rule is not None]
    return max([1, *(len(each.files) for each in values if isinstance(each, inputs.Files))])


def _values(random: Any, tensor: RuledTensor, case: int) -> Any:
    values = tensor.rule.values if tensor.rule is not None else None
    if isinstance(values, inputs.Files):
        return load_value(Path(values.files[case % len(values.files)]), dtype_named(tensor.dtype))
    if "sequence" in tensor.form:
        return [_draw(random, tensor, values) for _ in range(inputs.DRAWN_LENGTH)]
    return _draw(random, tensor, values)


def _draw(random: Any, tensor: RuledTensor, values: inputs.Draw | inputs.Columns | None) -> Any:
    dtype, shape = dtype_named(tensor.dtype), tensor.shape
    match values:
        case None:
            return _draw_default(random, shape, dtype)
        case inputs.Columns(axis=axis, parts=parts):
            rest = shape[:axis] + shape[axis + 1 :]
            return np.stack([_part(random, part, rest, dtype) for part in parts], axis=axis)
        case _:
            return _part(random, values, shape, dtype)


def _draw_default(random: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    kind = kind_of(dtype)
    if kind == "O":
        return np.full(shape, "a", dtype)
    if kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _part(random: Any, part: inputs.Draw, shape: tuple[int, ...], dtype: Any) -> Any:
    match part:
        case inputs.Normal(mean=mean, deviation=deviation):
            normal = random.standard_normal(shape)
            is_standard = mean == 0 and deviation == 1
            return (normal if is_standard else normal * deviation + mean).astype(dtype)
        case inputs.Uniform(low=low, high=high):
            return np.asarray(random.uniform(low, high, shape)).astype(dtype)
        case inputs.Integers(low=low, high=high):
            return np.asarray(random.integers(low, high, shape, endpoint=True)).astype(dtype)
        case inputs.OneOf():
            return _choose(random, part, shape, dtype)
        case inputs.Constant(value=value):
            return np.full(shape, value, dtype)
        case _:
            assert_never(part)


def _choose(random: Any, choice: inputs.OneOf, shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.asarray(choice.values, dtype)
    if choice.words == 1:
        return np.asarray(values[random.integers(0, len(values), shape)], dtype)
    words = random.integers(0, len(values), (*shape, choice.words)).reshape(-1, choice.words)
    texts = [" ".join(str(values[word]) for word in each) for each in words]
    return np.asarray(texts, dtype).reshape(shape)


# Saves and loads the value of an input in a file of ours: an array, a sequence of arrays, or
# nothing.

SEQUENCE_SUFFIX = ".npz"
_ABSENT = "absent"
"""The name in an archive that stands for an absent optional value."""


def save_value(value: Any, stem: Path) -> Path:
    """Saves an array, a list of arrays or None without pickles, texts included. Returns the file:
    the stem with a suffix."""
    if value is None or isinstance(value, list):
        file = Path(f"{stem}{SEQUENCE_SUFFIX}")
        arrays = {_ABSENT: np.empty(0)} if value is None else dict(enumerate(map(_storable, value)))
        np.savez(file, allow_pickle=False, **{str(name): array for name, array in arrays.items()})
        return file
    file = Path(f"{stem}.npy")
    np.save(file, _storable(value), allow_pickle=False)
    return file


def load_value(file: Path, dtype: Any) -> Any:
    """Returns the saved value in the input's type."""
    if file.suffix != SEQUENCE_SUFFIX:
        return _restore_type(np.load(file, allow_pickle=False), dtype)
    with np.load(file, allow_pickle=False) as archive:
        if _ABSENT in archive:
            return None
        arrays = [archive[str(place)] for place in range(len(archive.files))]
    return [_restore_type(array, dtype) for array in arrays]


def _restore_type(array: Any, dtype: Any) -> Any:
    """Returns the array in its type: NumPy's files store foreign types as bytes of their width."""
    return array.view(dtype) if array.dtype.kind == "V" else array.astype(dtype, copy=False)


def _storable(array: Any) -> Any:
    if is_narrow(array.dtype):
        return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")
    return array.astype(str) if array.dtype.kind == "O" else array
