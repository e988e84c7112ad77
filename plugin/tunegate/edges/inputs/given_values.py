"""The values that a user gives for inputs, as rules: checked beside the model that they are for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np

from tunegate.artifacts.input_rules import Files, InputRule, Integers, Uniform
from tunegate.config import Scalar, ValuesConfig
from tunegate.edges.inputs.array_files import MAX_ARRAY_BYTES, read_array, save_array
from tunegate.edges.models.model_inputs import values_of_file
from tunegate.edges.models.preparation import tensor_of
from tunegate.edges.models.prepared import OPEN, Tensor
from tunegate.errors import ModelError, RevisionError
from tunegate.given_rules import GivenFor, GivenRules
from tunegate.ports import Repository

_NUMBERS = "biuf"
_OUTSIDE = "lies outside of the repository. Commit it, or give an absolute path on the runner"


class GivenValues:
    """Reads files at revisions of the repository, where they are checked in; others of absolute
    paths on this machine. Arrays are kept in `into`."""

    def __init__(self, repository: Repository, into: Path) -> None:
        self._repository, self._into = repository, into
        self._known: dict[tuple[Path, bytes], GivenRules] = {}

    def rules(self, model: Path, wanted: GivenFor) -> GivenRules:
        """The first revision that has a file that fits counts. The stages of a run ask for the
        same, and what they ask for is read once."""
        if not wanted.values:
            return GivenRules({}, ())
        question = (model, msgspec.json.encode(wanted))
        if question not in self._known:
            self._known[question] = self._read(model, wanted)
        return self._known[question]

    def _read(self, model: Path, wanted: GivenFor) -> GivenRules:
        tensors = _tensors(model, wanted.shapes)
        if tensors is None:
            return GivenRules({}, ())
        rules: dict[str, InputRule] = {}
        problems: list[str] = []
        for name, values in wanted.values.items():
            where = f"inputs.{name}.values"
            tensor = tensors.get(name)
            if tensor is None:
                problems.append(f"{where}: the model has no such input; it has {_listed(tensors)}.")
                continue
            try:
                rules[name] = self._rule(tensor, values, wanted)
            except ModelError as error:
                problems.append(f"{where}: {error}.")
        return GivenRules(rules, (*problems, *_uneven(rules)))

    def _rule(self, tensor: Tensor, values: ValuesConfig, wanted: GivenFor) -> InputRule:
        if values.low is not None and values.high is not None:
            return _range(tensor, values.low, values.high)
        cases: Sequence[Scalar] = values.cases or (values.file or "",)
        files = tuple(str(self._case(tensor, case, wanted)) for case in cases)
        names = tuple(str(case) for case in cases)
        return InputRule(Files(files, names), f"given: {', '.join(names[:3])}")

    def _case(self, tensor: Tensor, case: Scalar, wanted: GivenFor) -> Path:
        """An input that has another name or type now makes none of its values easier: those of the
        first revision count as long as they are the same numbers in it."""
        if not isinstance(case, str):
            return self._kept(_filled(tensor, case))
        problem, misfits = "", list[Any]()
        for content in self._contents(case, wanted.revisions):
            try:
                array = _array(content, case, (tensor.name, wanted.former.get(tensor.name, "")))
            except ModelError as error:
                problem = problem or f"{case}: {error}"
                continue
            misfit = _misfit(array, tensor)
            if not misfit:
                return self._kept(_first([*(_converted(each, tensor) for each in misfits), array]))
            problem = problem or f"{case} has {misfit}"
            misfits.append(array)
        where = "" if Path(case).is_absolute() else " in this revision: commit it"
        raise ModelError(problem or f"{case}: no such file{where}")

    def _contents(self, file: str, revisions: Sequence[str]) -> Sequence[bytes]:
        if Path(file).is_absolute():
            return _outside(Path(file))
        path = PurePosixPath(file.removeprefix("./"))
        if ".." in path.parts or not path.parts:
            raise ModelError(f"{file} {_OUTSIDE}")
        found = []
        for revision in dict.fromkeys(revisions):
            try:
                found.append(self._repository.data(revision, str(path), MAX_ARRAY_BYTES))
            except RevisionError:
                continue
        return found

    def _kept(self, array: Any) -> Path:
        """Equal arrays share one file."""
        self._into.mkdir(parents=True, exist_ok=True)
        shown = repr((array.shape, str(array.dtype))).encode()
        body = array.astype(str).tobytes() if array.dtype.kind == "O" else array.tobytes()
        file = self._into / f"{hashlib.sha256(shown + body).hexdigest()[:16]}.npy"
        if not file.exists():
            save_array(array, file)
        return file.absolute()


def _array(content: bytes, case: str, keys: tuple[str, str]) -> Any:
    """The array; of several in an archive the one that is called like the input, or like it was."""
    key, former = keys
    try:
        return read_array(content, case, key)
    except ModelError:
        if not former:
            raise
        return read_array(content, case, former)


def _first(arrays: Sequence[Any]) -> Any:
    return next(array for array in arrays if array is not None)


def _converted(array: Any, tensor: Tensor) -> Any:
    """The same numbers in the type of the input, None where they are not the same."""
    wanted = np.dtype(tensor.dtype)
    if array.dtype.kind not in _NUMBERS or wanted.kind not in _NUMBERS:
        return None
    with np.errstate(all="ignore"):
        found = array.astype(wanted)
    is_rounded = array.dtype.kind == wanted.kind == "f"
    is_same = is_rounded or bool((found == array).all())
    return found if is_same and not _misfit(found, tensor) else None


def _outside(file: Path) -> Sequence[bytes]:
    if not file.is_file():
        return ()
    if file.stat().st_size > MAX_ARRAY_BYTES:
        raise ModelError(f"{file}: it has over {MAX_ARRAY_BYTES >> 20} MiB")
    try:
        return (file.read_bytes(),)
    except OSError as error:
        raise ModelError(f"{file}: it cannot be read ({error.strerror})") from error


def _tensors(model: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor] | None:
    """The inputs as they are fed; a dimension that nothing says is `OPEN`. None for what is no
    model, which is told of where it is built."""
    values = values_of_file(model)
    if values is None:
        return None
    try:
        tensors = {value.name: tensor_of(value, model.name) for value in values}
    except ModelError:
        return None
    return {
        name: Tensor(name, tuple(shapes.get(name, tensor.shape)), tensor.dtype)
        for name, tensor in tensors.items()
    }


def _shape(tensor: Tensor) -> tuple[int, ...]:
    if OPEN in tensor.shape:
        raise ModelError("the shape of the input is open: give it too")
    return tensor.shape


def _filled(tensor: Tensor, number: float) -> Any:
    """The input with the same number everywhere."""
    shape, dtype = _shape(tensor), np.dtype(tensor.dtype)
    try:
        with np.errstate(all="ignore"):
            array = np.full(shape, number, dtype)
        if dtype.kind not in "iu" or array.size == 0 or array.flat[0] == number:
            return array
    except (ArithmeticError, TypeError, ValueError, MemoryError):
        pass  # told below
    raise ModelError(f"{number} does not fit {dtype} {list(shape)}")


def _range(tensor: Tensor, low: float, high: float) -> InputRule:
    dtype, why = np.dtype(tensor.dtype), f"given: {low} to {high}"
    if dtype.kind == "O":
        raise ModelError("texts have no range: give a file")
    if not _is_finite(low, high):
        raise ModelError(f"{low} to {high} is no range that numbers can be drawn from")
    if dtype.kind not in "iub":
        return InputRule(Uniform(float(low), float(high)), why)
    limits = np.iinfo(dtype) if dtype.kind != "b" else np.iinfo(np.uint8)
    if int(low) != low or int(high) != high:
        raise ModelError(f"{low} to {high} are no integers, and the input is {dtype}")
    if low < limits.min or high > limits.max:
        raise ModelError(f"{low} to {high} does not fit {dtype}")
    return InputRule(Integers(int(low), int(high)), why)


def _is_finite(low: float, high: float) -> bool:
    """Whether numbers can be drawn between them, which their distance limits."""
    try:
        return math.isfinite(float(high) - float(low))
    except OverflowError:
        return False


def _misfit(array: Any, tensor: Tensor) -> str:
    wanted = np.dtype(tensor.dtype)
    if not (array.dtype == wanted or (wanted.kind == "O" and array.dtype.kind in "OU")):
        called = "texts" if wanted.kind == "O" else str(wanted)
        return f"type {array.dtype} instead of {called}"
    fits = len(array.shape) == len(tensor.shape) and all(
        size in {OPEN, has} for size, has in zip(tensor.shape, array.shape, strict=True)
    )
    if fits:
        return ""
    shown = ", ".join("?" if size == OPEN else str(size) for size in tensor.shape)
    return f"shape {list(array.shape)} instead of [{shown}]"


def _uneven(rules: Mapping[str, InputRule]) -> Sequence[str]:
    """All inputs take the same case, so each must have as many."""
    counts = {
        name: len(rule.values.files)
        for name, rule in rules.items()
        if isinstance(rule.values, Files) and len(rule.values.files) > 1
    }
    if len({*counts.values()}) < 2:  # noqa: PLR2004
        return ()
    shown = ", ".join(f"{name} has {count}" for name, count in counts.items())
    return (f"inputs: all need the same number of cases; {shown}.",)


def _listed(tensors: Mapping[str, Tensor]) -> str:
    return ", ".join(sorted(tensors)) or "none"
