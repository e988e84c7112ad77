"""Turns values that a user gave for inputs into rules, checked against the model."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np

from tunegate.artifacts import inputs
from tunegate.config import Scalar, ValuesConfig
from tunegate.errors import ModelError, RevisionError
from tunegate.models.inputs.value_files import MAX_ARRAY_BYTES, MAX_TENSORS, read_value
from tunegate.models.model_inputs import inputs_of_file, values_of_file
from tunegate.models.narrow_types import dtype_named, kind_of, limits_of, stands_for
from tunegate.models.preparation import tensor_of
from tunegate.models.prepared import OPEN, Tensor
from tunegate.models.seeded_inputs import save_value
from tunegate.ports import InputReaders, Repository
from tunegate.wording import plural

_NUMBERS = "biuf"
_OUTSIDE = "lies outside of the repository. Commit it, or give an absolute path on the runner"


_MOST_LISTED = 8


class _UnfitCasesError(ModelError):
    """Cases that do not fit, up to a limit."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(problems[0])
        problems_left = len(problems) - _MOST_LISTED
        more = (f"and {plural(problems_left, 'case')} more",) if problems_left > 0 else ()
        self.problems = (*dict.fromkeys(problems[:_MOST_LISTED]), *more)


def input_readers(repository: Repository) -> InputReaders:
    """Returns the readers whose value files are those of the repository, or of this machine."""
    return InputReaders(inputs_of_file, lambda into: GivenValues(repository, into).rules)


class GivenValues:
    """Reads value files at revisions of the repository if they are checked in, absolute paths from
    this machine. Arrays are kept in `into`."""

    def __init__(self, repository: Repository, into: Path) -> None:
        self._repository, self._into = repository, into
        self._known: dict[tuple[Path, bytes], inputs.GivenRules] = {}

    def rules(self, model: Path, request: inputs.GivenFor) -> inputs.GivenRules:
        """Returns the rules from the first revision whose file fits. The stages of a run ask the
        same again, so each question is read once."""
        if not request.values:
            return inputs.GivenRules({}, ())
        question = (model, msgspec.json.encode(request))
        if question not in self._known:
            self._known[question] = self._read_rules(model, request)
        return self._known[question]

    def _read_rules(self, model: Path, request: inputs.GivenFor) -> inputs.GivenRules:
        tensors = _tensors(model, request.shapes)
        if tensors is None:
            return inputs.GivenRules({}, ())
        rules: dict[str, inputs.InputRule] = {}
        problems: list[str] = []
        for name, values in request.values.items():
            where = f"inputs.{name}.values"
            tensor = tensors.get(name)
            if tensor is None:
                names = ", ".join(sorted(tensors)) or "none"
                problems.append(f"{where}: the model has no such input; it has {names}.")
                continue
            try:
                rules[name] = self._rule(tensor, values, request)
            except _UnfitCasesError as error:
                problems += [f"{where}: {problem}." for problem in error.problems]
            except ModelError as error:
                problems.append(f"{where}: {error}.")
        return inputs.GivenRules(rules, (*problems, *_uneven(rules)))

    def _rule(
        self, tensor: Tensor, values: ValuesConfig, request: inputs.GivenFor
    ) -> inputs.InputRule:
        if values.low is not None and values.high is not None:
            return _range(tensor, values.low, values.high)
        if values.sequence is not None:
            return self._sequence(tensor, values.sequence, request)
        cases: Sequence[Scalar] = values.cases or (values.file or "",)
        files = self._cases(tensor, cases, request)
        names = tuple(str(case) for case in cases)
        return inputs.InputRule(inputs.Files(files, names), f"{inputs.GIVEN}{', '.join(names[:3])}")

    def _sequence(
        self, tensor: Tensor, files: Sequence[str], request: inputs.GivenFor
    ) -> inputs.InputRule:
        """Returns a sequence value with one tensor per file."""
        if "sequence" not in tensor.form:
            raise ModelError("the input is not a sequence: give a file, or cases")
        if len(files) > MAX_TENSORS:
            raise ModelError(f"it has {len(files)} tensors; a sequence may have {MAX_TENSORS}")
        each, bytes_left, arrays = msgspec.structs.replace(tensor, form=""), MAX_ARRAY_BYTES, []
        for file in files:
            arrays.append(self._read_case(each, file, request))
            bytes_left -= arrays[-1].nbytes
            if bytes_left < 0:
                raise ModelError(f"it has over {MAX_ARRAY_BYTES >> 20} MiB")
        names = ", ".join(files[:3]) or "an empty sequence"
        return inputs.InputRule(
            inputs.Files((str(self._save(arrays)),), (names,)), f"{inputs.GIVEN}{names}"
        )

    def _cases(
        self, tensor: Tensor, cases: Sequence[Scalar], request: inputs.GivenFor
    ) -> tuple[str, ...]:
        """Returns the file of each case. Raises with all unfit cases at once."""
        files, problems = list[str](), list[str]()
        for case in cases:
            try:
                files.append(str(self._case(tensor, case, request)))
            except ModelError as error:
                problems.append(str(error))
        if problems:
            raise _UnfitCasesError(problems)
        return tuple(files)

    def _case(self, tensor: Tensor, case: Scalar, request: inputs.GivenFor) -> Path:
        if isinstance(case, str):
            return self._save(self._read_case(tensor, case, request))
        if tensor.form:
            raise ModelError(f"{case} fills no {tensor.form}: give a file")
        return self._save(_fill(tensor, case))

    def _read_case(self, tensor: Tensor, case: str, request: inputs.GivenFor) -> Any:
        """Reads a case from the first revision where it fits. Renaming or retyping an input must
        not make its values easier: the first revision's count if the numbers are the same in the
        new type."""
        problem, misfits = "", list[Any]()
        for content in self._contents(case, request.revisions):
            try:
                value = _value(content, case, tensor, request.former.get(tensor.name, ""))
            except ModelError as error:
                problem = problem or f"{case}: {error}"
                continue
            misfit = misfit_of(value, tensor)
            if not misfit:
                values = [*(_convert_value(each, tensor) for each in misfits), [value]]
                return next(in_list[0] for in_list in values if in_list is not None)
            problem = problem or f"{case} has {misfit}"
            misfits.append(value)
        absent = "no such file" if Path(case).is_absolute() else f"{inputs.ABSENT}: commit it"
        raise ModelError(problem or f"{case}: {absent}")

    def _contents(self, file: str, revisions: Sequence[str]) -> Sequence[bytes]:
        if Path(file).is_absolute():
            return _outside(Path(file))
        path = PurePosixPath(file.removeprefix("./"))
        if ".." in path.parts or not path.parts:
            raise ModelError(f"{file} {_OUTSIDE}")
        contents = []
        for revision in dict.fromkeys(revisions):
            try:
                contents.append(self._repository.data(revision, str(path), MAX_ARRAY_BYTES))
            except RevisionError:
                continue
        return contents

    def _save(self, value: Any) -> Path:
        """Saves a value; equal values share one file."""
        self._into.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(type(value).__name__.encode())
        for array in arrays_of(value):
            digest.update(repr((array.shape, str(array.dtype))).encode())
            is_text = array.dtype.kind == "O"
            digest.update(array.astype(str).tobytes() if is_text else array.tobytes())
        stem = self._into / digest.hexdigest()
        saved = [*self._into.glob(f"{stem.name}.*")]
        return (saved[0] if saved else save_value(value, stem)).absolute()


def _value(content: bytes, case: str, tensor: Tensor, former: str) -> Any:
    """Returns the value; from an archive the array named like the input, or like its former
    name."""
    try:
        return read_value(content, case, tensor.name, tensor.form)
    except ModelError:
        if not former:
            raise
        return read_value(content, case, former, tensor.form)


def _convert_value(value: Any, tensor: Tensor) -> Any:
    """Returns the value in the input's type, in a list; None if numbers would change."""
    arrays = [_convert(array, tensor) for array in arrays_of(value)]
    if value is None or any(array is None for array in arrays):
        return None
    return [arrays] if isinstance(value, list) else arrays


def _convert(array: Any, tensor: Tensor) -> Any:
    """Returns the numbers in the input's type, None if they would change."""
    dtype = dtype_named(tensor.dtype)
    if kind_of(array.dtype) not in _NUMBERS or kind_of(dtype) not in _NUMBERS:
        return None
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
    is_rounded = kind_of(array.dtype) == kind_of(dtype) == "f"
    is_same = is_rounded or bool((converted == array).all())
    return converted if is_same and not array_misfit(converted, tensor) else None


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
    """Returns the inputs as they are fed, unknown sizes as `OPEN`. None if the file is no model,
    which the build reports."""
    values = values_of_file(model)
    if values is None:
        return None
    try:
        tensors = {value.name: tensor_of(value, model.name) for value in values}
    except ModelError:
        return None
    return {
        name: tensor
        if tensor.form  # each tensor of a sequence may have another size
        else msgspec.structs.replace(tensor, shape=tuple(shapes.get(name, tensor.shape)))
        for name, tensor in tensors.items()
    }


def _fill(tensor: Tensor, number: float) -> Any:
    """Returns the input with one number everywhere."""
    if OPEN in tensor.shape:
        raise ModelError("the shape of the input is open: give it too")
    shape, dtype = tensor.shape, dtype_named(tensor.dtype)
    try:
        with np.errstate(all="ignore"):
            array = np.full(shape, number, dtype)
        if kind_of(dtype) not in "iu" or array.size == 0 or array.flat[0] == number:
            return array
    except (ArithmeticError, TypeError, ValueError, MemoryError):
        pass  # reported below
    raise ModelError(f"{number} does not fit {dtype} {list(shape)}")


def _range(tensor: Tensor, low: float, high: float) -> inputs.InputRule:
    dtype, why = dtype_named(tensor.dtype), f"{inputs.GIVEN}{low} to {high}"
    kind = kind_of(dtype)
    if kind == "O":
        raise ModelError("texts have no range: give a file")
    if not _is_finite(low, high):
        raise ModelError(f"{low} to {high} is not a range that numbers can be drawn from")
    if kind not in "iub":
        return inputs.InputRule(inputs.Uniform(float(low), float(high)), why)
    least, most = limits_of(np.dtype(np.uint8) if kind == "b" else dtype)
    if int(low) != low or int(high) != high:
        raise ModelError(f"{low} to {high} are not integers, and the input is {dtype}")
    if low < least or high > most:
        raise ModelError(f"{low} to {high} does not fit {dtype}")
    return inputs.InputRule(inputs.Integers(int(low), int(high)), why)


def _is_finite(low: float, high: float) -> bool:
    """Returns whether numbers can be drawn between the bounds: their distance must be finite."""
    try:
        return math.isfinite(float(high) - float(low))
    except OverflowError:
        return False


def _uneven(rules: Mapping[str, inputs.InputRule]) -> Sequence[str]:
    """Returns a problem if inputs have different numbers of cases: all inputs take the same
    case."""
    counts = {
        name: len(rule.values.files)
        for name, rule in rules.items()
        if isinstance(rule.values, inputs.Files) and len(rule.values.files) > 1
    }
    if len({*counts.values()}) < 2:  # noqa: PLR2004
        return ()
    counts_text = ", ".join(f"{name} has {count}" for name, count in counts.items())
    return (f"inputs: all need the same number of cases; {counts_text}.",)


# Misfits of a given value: its type, its shape, or NaN.


def misfit_of(value: Any, tensor: Tensor) -> str:
    """Returns why the first unfit tensor of a value does not fit, '' if all fit."""
    return next(filter(None, (array_misfit(array, tensor) for array in arrays_of(value))), "")


def array_misfit(array: Any, tensor: Tensor) -> str:
    """Returns why an array does not fit the input, '' if it fits."""
    expected = dtype_named(tensor.dtype)
    is_text = expected.kind == "O" and array.dtype.kind in "OU"
    if not (array.dtype == expected or is_text or stands_for(array.dtype, expected)):
        dtype_name = "texts" if expected.kind == "O" else str(expected)
        return f"type {array.dtype} instead of {dtype_name}"
    is_any = bool(tensor.form) and tensor.shape == (OPEN,)
    fits = is_any or (
        len(array.shape) == len(tensor.shape)
        and all(size in {OPEN, has} for size, has in zip(tensor.shape, array.shape, strict=True))
    )
    if fits:
        is_nothing = array.dtype.kind == "f" and array.size and bool(np.isnan(array).all())
        return "NaN alone, which tells nothing of the model" if is_nothing else ""
    sizes = ", ".join("?" if size == OPEN else str(size) for size in tensor.shape)
    return f"shape {list(array.shape)} instead of [{sizes}]"


def arrays_of(value: Any) -> Sequence[Any]:
    """Returns the arrays in a value, none if it is absent."""
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)
