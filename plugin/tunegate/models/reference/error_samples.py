"""Samples a build's error: it and the reference run on the same inputs, one by one."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tunegate.artifacts.builds import SampledErrors, SaturatedOutput
from tunegate.artifacts.inputs import Files
from tunegate.models.narrow_types import kind_of
from tunegate.models.reference.comparison import DidNotRun, arrays_in
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.reference.session import session_as_written
from tunegate.models.reference.tolerance import errors, is_numeric, other_dtype
from tunegate.models.seeded_inputs import RuledTensor, cases_of, lasting_order, seeded_inputs
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.processes.memory_limit import lacked_memory

MAX_SAMPLING_SECONDS = 90.0
"""The time limit of sampling; later inputs are not run."""
MAX_CASES = 300
"""The most user cases to run, unless the budget needs more."""


def sampled_errors(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Path,
    inputs: Sequence[RuledTensor],
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    cases: str = "",
) -> SampledErrors | DidNotRun:
    """Runs the inputs of each seed through both, and up to `MAX_CASES` of the user's cases, drawn
    by the seeds. If nothing else is drawn, each case counts once. With `cases`, both results are
    saved in that directory."""
    watch = _Watch(names)
    case_files = CaseFiles(Path(cases), inputs, names) if cases else None
    begin, hashes = time.monotonic(), set()
    try:
        session = None
        for case, seed in _seeded_cases(seeds, cases_of(inputs)):
            feed = seeded_inputs(inputs, seed, case)
            # Skip inputs that were drawn before.
            arrays = (part.array for each in feed.values() for part in arrays_in(each))
            contents = tuple((array.shape, array.tobytes()) for array in arrays)
            if hash(contents) in hashes:
                continue
            hashes.add(hash(contents))
            if session is None:
                session, expected = session_as_written(reference, feed)
            else:
                expected = session.run(feed)
            outputs = run(feed)
            watch.add(outputs, expected)
            if case_files is not None:
                case_files.add(case, feed, outputs, expected)
            if time.monotonic() - begin > MAX_SAMPLING_SECONDS:
                break
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        raise_lost_device(error)
        return DidNotRun(error_line(error), memory=lacked_memory(error))
    return watch.errors()


def _seeded_cases(seeds: Sequence[int], cases: int) -> Iterator[tuple[int, int]]:
    """Yields case numbers, each with a seed for what is drawn beside it."""
    number = max(len(seeds), min(cases, MAX_CASES))
    order = itertools.cycle(lasting_order(cases))
    return itertools.islice(zip(order, itertools.cycle(seeds), strict=False), number)


_NO_NUMBER = "an output has another shape, text, NaN or infinity than in float32"


class _Sample(NamedTuple):
    """Observations on one input: the largest error, the outputs that carry information, and whether
    each output's largest value is in the same place."""

    relative: float
    telling: frozenset[str]
    agrees: dict[str, bool]

    def agreements(self, names: Collection[str]) -> list[bool]:
        """Returns, for each of these outputs, whether its largest value is in the same place."""
        return [is_same for name, is_same in self.agrees.items() if name in names]


class _Watch:
    """The observations so far."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._samples: list[_Sample] = []
        self._arrays: dict[tuple[str, str], TellingElements] = {}
        self._places: dict[tuple[str, str], MovingPlaces] = {}
        self._largest = dict.fromkeys(names, 0.0)
        self._moved: Counter[str] = Counter()

    def add(self, actual: Sequence[Any], expected: Sequence[Any]) -> None:
        telling: set[str] = set()
        agrees: dict[str, bool] = {}
        largest = 0.0
        for name, ours, theirs in zip(self._names, actual, expected, strict=True):
            for mine, reference in zip(arrays_in(ours), arrays_in(theirs), strict=True):
                wrong = other_dtype(mine.array, reference.array)
                if wrong:
                    raise ValueError(f"output {name} is {wrong}")
                where = (name, reference.place)
                elements = self._arrays.setdefault(where, TellingElements())
                if elements.tell(mine.array, reference.array):
                    telling.add(name)
                relative = _relative(mine.array, reference.array)
                largest = max(largest, relative)
                self._largest[name] = max(self._largest[name], relative)
                self._places.setdefault(where, MovingPlaces()).add(reference.array)
                same_place = agreement(mine.array, reference.array)
                if same_place is not None:
                    agrees[name] = agrees.get(name, True) and same_place
        if not np.isfinite(largest):
            raise ValueError(_NO_NUMBER)
        self._moved.update(name for name, is_same in agrees.items() if not is_same)
        self._samples.append(_Sample(largest, frozenset(telling), agrees))

    def errors(self) -> SampledErrors:
        """Returns the errors of the inputs on which a varying output carries information."""
        varying = {name for (name, _), each in self._arrays.items() if each.varies}
        telling = [at for at, each in enumerate(self._samples) if each.telling & varying]
        counting = [self._samples[at] for at in telling]
        telling_outputs = {name for each in counting for name in each.telling & varying}
        moving = {name for (name, _), each in self._places.items() if each.moves}
        agreements = [each.agreements(varying & moving) for each in counting]
        one_place = {name for each in counting for name in each.agrees} & (varying - moving)
        return SampledErrors(
            relative=tuple(each.relative for each in counting),
            agrees=tuple(all(each) for each in agreements if each),
            saturated=tuple(name for name in self._names if name not in telling_outputs),
            one_place=tuple(name for name in self._names if name in one_place),
            largest_of=_most_frequent(self._largest),
            disagrees=_most_frequent(self._moved),
            inputs=len(self._samples),
            telling=tuple(telling),
            mostly_saturated=tuple(
                each for each in self._saturated_outputs() if each.output in telling_outputs
            ),
        )

    def _saturated_outputs(self) -> Iterator[SaturatedOutput]:
        for name in self._names:
            arrays = [each for (of, _), each in self._arrays.items() if of == name]
            count = sum(array.elements for array in arrays)
            percent = 100 * sum(array.at_bounds for array in arrays) / count if count else 0.0
            if percent > _MOST_PERCENT:
                yield SaturatedOutput(output=name, percent=percent)


_MOST_PERCENT = 50.0
"""The percentage of elements at a bound from which an output is reported."""


def _most_frequent(counts: Mapping[str, float]) -> str:
    """Returns the output with the highest count, '' if all are zero."""
    name = max(counts, key=counts.__getitem__, default="")
    return name if counts.get(name) else ""


def _relative(actual: Any, expected: Any) -> float:
    """Returns the relative error, infinite if it has no size: another shape, text or NaN."""
    if actual.shape != expected.shape:
        return float("inf")
    if not is_numeric(actual) or not is_numeric(expected):
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    ours, theirs = actual.astype("float64"), expected.astype("float64")
    others = ~(np.isfinite(ours) & np.isfinite(theirs))
    if not np.array_equal(ours[others], theirs[others], equal_nan=True):
        return float("inf")
    return errors(actual, expected)[1]


# Elements that carry information about an error. A clip, a sigmoid or a mask ends in values that an
# earlier error does not change: elements that both sides have at such a bound say nothing about
# their distance.


class TellingElements:
    """One array of an output, over all inputs. Its bounds are 0, 1, and its minimum and maximum if
    several inputs end in them."""

    def __init__(self) -> None:
        self._first: Any = None
        self._least: Any = None
        self._largest: Any = None
        self.varies = False
        self.elements = 0
        self.at_bounds = 0

    def tell(self, actual: Any, reference: Any) -> bool:
        """Records an output, and returns whether any element carries information on this input."""
        self._compare(reference)
        if kind_of(reference.dtype) != "f" or not reference.size or actual.shape != reference.shape:
            return bool(reference.size)
        is_finite = np.isfinite(reference)
        at_bound = np.isin(reference, self._bounds(reference[is_finite]))
        self.elements += reference.size
        self.at_bounds += int(np.count_nonzero(at_bound))
        return bool(np.any(is_finite & ~(at_bound & (actual == reference))))

    def _compare(self, reference: Any) -> None:
        if self._first is None:
            self._first = reference
        elif not self.varies:
            is_float = kind_of(reference.dtype) == "f"
            self.varies = not np.array_equal(self._first, reference, equal_nan=is_float)

    def _bounds(self, finite: Any) -> list[Any]:
        bounds = [0.0, 1.0]
        if not finite.size:
            return bounds
        least, largest = finite.min(), finite.max()
        bounds += [least] if least == self._least else []
        bounds += [largest] if largest == self._largest else []
        self._least = least if self._least is None else min(least, self._least)
        self._largest = largest if self._largest is None else max(largest, self._largest)
        return bounds


def largest_places(reference: Any) -> Any | None:
    """Returns the index of the largest value in each row along the last axis, -1 if it occurs
    several times, or the row has only 0 and 1. None if no row has an index."""
    if kind_of(reference.dtype) != "f" or not reference.ndim or reference.shape[-1] < 2:  # noqa: PLR2004 -- one has no rival
        return None
    rows = reference.reshape(-1, reference.shape[-1])
    if not rows.size:
        return None
    largest = rows.max(-1, keepdims=True)
    is_alone = np.count_nonzero(rows == largest, axis=-1) == 1
    is_saturated = np.all((rows == 0) | (rows == 1), axis=-1)
    telling = is_alone & ~is_saturated & np.isfinite(largest[:, 0])
    return np.where(telling, np.argmax(rows, -1), -1) if np.any(telling) else None


def agreement(actual: Any, reference: Any) -> bool | None:
    """Returns whether the largest value is in the same place in every row that has one, None if no
    row has."""
    places = largest_places(reference)
    if places is None:
        return None
    if actual.shape != reference.shape:
        return False
    ours = np.argmax(actual.reshape(-1, actual.shape[-1]), -1)
    return bool(np.all((ours == places) | (places < 0)))


class MovingPlaces:
    """The positions of the largest values of one array, over all inputs. A model with a constant
    answer agrees with any other constant answer, which proves nothing."""

    def __init__(self) -> None:
        self._first: Any = None
        self.moves = False

    def add(self, reference: Any) -> None:
        """Takes the array of one more input."""
        places = largest_places(reference)
        if places is None or self.moves:
            return
        if self._first is None or self._first.shape != places.shape:
            self.moves = self._first is not None
            self._first = places
            return
        both = (self._first >= 0) & (places >= 0)
        self.moves = bool(np.any(both & (self._first != places)))
        self._first = np.where(self._first >= 0, self._first, places)


# Saves the outputs of a build and of the reference on the same inputs, for a user's program. Each
# case is a NumPy archive, described by `cases.json`. Only that file has the model's names: they may
# hold anything, and names in an archive become paths when it is unpacked.

CASES_FILE = "cases.json"
MAX_CASES_BYTES = 512 * 2**20
"""The most bytes to save for one build; later cases are left out."""


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """`given` are the files that the user gave, by input."""

    file: str
    given: dict[str, str]


class _Arrays(msgspec.Struct, frozen=True, kw_only=True):
    """`inputs` has the name of each array `input_N`, `outputs` that of each `reference_N`, with its
    position if it is one of several in a sequence."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cases: tuple[_Case, ...]


class CaseFiles:
    """Writes cases; their arrays are `input_N`, `reference_N` and `candidate_N`."""

    def __init__(
        self, directory: Path, inputs: Sequence[RuledTensor], outputs: Sequence[str]
    ) -> None:
        self._directory, self._inputs, self._outputs = directory, inputs, outputs
        directory.mkdir(parents=True, exist_ok=True)
        self._cases: list[_Case] = []
        self._bytes = 0

    def add(
        self, case: int, feed: Mapping[str, Any], actual: Sequence[Any], expected: Sequence[Any]
    ) -> None:
        """Saves a case and lists it in `cases.json`, as long as there is room."""
        of_inputs = list(_arrays((each.name, feed[each.name]) for each in self._inputs))
        of_outputs = list(self._output_arrays(expected))
        arrays = {
            **{f"input_{n}": array for n, (_, array) in enumerate(of_inputs)},
            **{f"reference_{n}": array for n, (_, array) in enumerate(of_outputs)},
            **{f"candidate_{n}": array for n, (_, array) in enumerate(self._output_arrays(actual))},
        }
        self._bytes += sum(array.nbytes for array in arrays.values())
        if self._bytes > MAX_CASES_BYTES:
            return
        name = f"case-{len(self._cases):04}.npz"
        np.savez(self._directory / name, allow_pickle=False, **arrays)
        self._cases.append(_Case(file=name, given=self._given_files(case)))
        described = _Arrays(
            inputs=tuple(name for name, _ in of_inputs),
            outputs=tuple(name for name, _ in of_outputs),
            cases=tuple(self._cases),
        )
        (self._directory / CASES_FILE).write_bytes(msgspec.json.encode(described))

    def _output_arrays(self, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        return _arrays(zip(self._outputs, values, strict=True))

    def _given_files(self, case: int) -> dict[str, str]:
        values = {each.name: each.rule.values for each in self._inputs if each.rule is not None}
        return {
            name: draw.names[case % len(draw.names)]
            for name, draw in values.items()
            if isinstance(draw, Files) and draw.names
        }


def _arrays(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in values:
        for place, array in arrays_in(value):
            yield f"{name} {place}".rstrip(), _without_objects(array)


def _without_objects(array: Any) -> Any:
    """Returns the array without objects, which only a pickle could hold."""
    plain = np.asarray(array)
    return plain.astype(str) if plain.dtype.kind == "O" else plain
