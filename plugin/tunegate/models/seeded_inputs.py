"""Inputs for a model that are the same everywhere: one seed gives one set of arrays."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, assert_never

import msgspec
import numpy as np

from tunegate.artifacts import inputs
from tunegate.errors import ModelError
from tunegate.models.narrow_types import dtype_named, is_narrow, kind_of
from tunegate.system.clock import derive_seed
from tunegate.system.output.artifact_file import ArtifactTensor


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
    number = seed if case is None else case
    return {tensor.name: _values(random, tensor, number) for tensor in tensors}


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


def has_given_values(tensors: Iterable[RuledTensor]) -> bool:
    """Returns whether an input has values from files."""
    return any(each.rule and isinstance(each.rule.values, inputs.Files) for each in tensors)


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
        return _fill(shape, dtype, lambda size: random.integers(0, 2, size))
    return _fill(shape, dtype, random.standard_normal)


_PIECE = 2**20


def _fill(shape: tuple[int, ...], dtype: Any, draw: Callable[[int], Any]) -> Any:
    """Returns as many drawn values as the shape has, piece by piece: the generator gives wider
    types, which would hold a large input twice or more."""
    array = np.empty(math.prod(shape), dtype)
    for start in range(0, array.size, _PIECE):
        piece = array[start : start + _PIECE]
        piece[...] = draw(piece.size)
    return array.reshape(shape)


def _part(random: Any, part: inputs.Draw, shape: tuple[int, ...], dtype: Any) -> Any:
    match part:
        case inputs.Normal(mean=mean, deviation=deviation):
            if mean == 0 and deviation == 1:
                return _fill(shape, dtype, random.standard_normal)
            return _fill(shape, dtype, lambda size: random.standard_normal(size) * deviation + mean)
        case inputs.Uniform(low=low, high=high):
            return _fill(shape, dtype, lambda size: random.uniform(low, high, size))
        case inputs.Integers(low=low, high=high):
            return _fill(shape, dtype, lambda size: random.integers(low, high, size, endpoint=True))
        case inputs.OneOf():
            return _choose(random, part, shape, dtype)
        case inputs.Constant(value=value):
            return np.full(shape, value, dtype)
        case _:
            assert_never(part)


def _choose(random: Any, choice: inputs.OneOf, shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.asarray(choice.values, dtype)
    if choice.words == 1:
        return _fill(shape, dtype, lambda size: values[random.integers(0, len(values), size)])
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


# Seeds of the inputs that decide whether a build in lower precision ships. They are the same in
# each run, so that a candidate near its budget does not pass in one and fail in the next. The
# inputs drawn from them depend only on the model's inputs and their rules.

_ROOT = 1


def error_seeds(count: int) -> tuple[int, ...]:
    """Returns the seeds of `count` inputs that measure an error. A longer list begins with a
    shorter one."""
    return tuple(derive_seed(_ROOT, "accuracy", n) for n in range(count))


def lasting_order(cases: int) -> tuple[int, ...]:
    """Returns the case numbers in a fixed shuffled order: lists are often sorted by class, and
    would begin with one class alone."""
    return tuple(sorted(range(cases), key=lambda case: derive_seed(_ROOT, "order", case)))


def calibration_seeds(count: int) -> tuple[int, ...]:
    """Returns the seeds of `count` inputs to learn ranges from, none of which measures an error."""
    return tuple(derive_seed(_ROOT, "calibration", n) for n in range(count))


# Separates inputs for calibration from those that measure the error: on the same inputs errors
# would look too small.

MAX_CALIBRATION_INPUTS = 32
_CALIBRATION_SHARE = 5
"""One case in this many calibrates."""


class Calibration(msgspec.Struct, frozen=True):
    """The inputs to calibrate a runtime on: drawn from the `seeds`, or the given `cases`."""

    inputs: tuple[ArtifactTensor, ...]
    seeds: tuple[int, ...]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for case, seed in enumerate(self.seeds):
            yield seeded_inputs(self.inputs, seed, case)


def calibration(
    tensors: Sequence[ArtifactTensor],
    given_inputs: Collection[str],
    seeds: Sequence[int],
    path: str,
) -> tuple[Calibration, tuple[ArtifactTensor, ...]]:
    """Returns the calibration inputs, and the inputs with the remaining cases to measure the error
    on. Raises ModelError for float inputs without given values."""
    missing = [
        each.name for each in tensors if "float" in each.dtype and each.name not in given_inputs
    ]
    if missing:
        message = (
            f"{path}: static int8 is calibrated on values that you give, and there are none for "
            f"{', '.join(missing)}: write them under inputs: in tunegate.yaml."
        )
        raise ModelError(message)
    cases = cases_of(tensors)
    count = min(MAX_CALIBRATION_INPUTS, max(1, cases // _CALIBRATION_SHARE))
    if cases == 1:
        return Calibration(tuple(tensors), tuple(seeds[:MAX_CALIBRATION_INPUTS])), tuple(tensors)
    order = lasting_order(cases)
    own_cases, others = sorted(order[:count]), sorted(order[count:])
    other_inputs = tuple(_cases(each, others) for each in tensors)
    own_inputs = tuple(_cases(each, own_cases) for each in tensors)
    return Calibration(own_inputs, tuple(seeds[:count])), other_inputs


def _cases(tensor: ArtifactTensor, indexes: Sequence[int]) -> ArtifactTensor:
    """Returns the input with only these cases; an input with one value for all keeps it."""
    rule = tensor.rule
    if rule is None or not isinstance(rule.values, inputs.Files) or len(rule.values.files) == 1:
        return tensor
    case_files = rule.values
    files = inputs.Files(
        tuple(case_files.files[case] for case in indexes),
        tuple(case_files.names[case] for case in indexes if case_files.names),
    )
    return msgspec.structs.replace(tensor, rule=msgspec.structs.replace(rule, values=files))
