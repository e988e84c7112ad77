"""Samples of the error of a build: it and the reference run on the same inputs, one by one."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunegate.artifacts.error_estimates import SampledErrors, SaturatedOutput
from tunegate.edges.inputs.lasting_seeds import lasting_order
from tunegate.edges.models.seeded_inputs import RuledTensor, cases_of, seeded_inputs
from tunegate.edges.nvidia.device_errors import raise_lost_device
from tunegate.edges.reference.case_files import CaseFiles
from tunegate.edges.reference.comparison import DidNotRun
from tunegate.edges.reference.error_text import said
from tunegate.edges.reference.output_values import arrays_in
from tunegate.edges.reference.session import ReferenceSession
from tunegate.edges.reference.telling import MovingPlaces, TellingElements, agreement
from tunegate.edges.reference.tolerance import errors, is_numeric

MAX_SAMPLING_SECONDS = 90.0
"""The longest that samples are taken: what comes later is not run."""
MAX_CASES = 300
"""The most cases of the user's that are run, unless the budget needs more."""


def sampled_errors(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Path,
    inputs: Sequence[RuledTensor],
    names: Sequence[str],
    seeds: Sequence[int],
    *,
    cases: str = "",
) -> SampledErrors | DidNotRun:
    """Runs the inputs of each seed through both, and each case that the user gave, up to
    `MAX_CASES` drawn from them. Where nothing else is drawn, each case counts once. With `cases`,
    what both computed is kept in that directory."""
    watch = _Watch(names)
    kept = CaseFiles(Path(cases), inputs, names) if cases else None
    started, seen = time.monotonic(), set()
    try:
        session = ReferenceSession(reference)
        for case, seed in _numbered(seeds, cases_of(inputs)):
            feed = seeded_inputs(inputs, seed, case)
            arrays = (part.array for each in feed.values() for part in arrays_in(each))
            drawn = tuple((array.shape, array.tobytes()) for array in arrays)
            if hash(drawn) in seen:
                continue
            seen.add(hash(drawn))
            got, expected = run(feed), session.run(feed)
            watch.add(got, expected)
            if kept is not None:
                kept.add(case, feed, got, expected)
            if time.monotonic() - started > MAX_SAMPLING_SECONDS:
                break
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        raise_lost_device(error)
        return DidNotRun(said(error))
    return watch.found()


def _numbered(seeds: Sequence[int], cases: int) -> Iterator[tuple[int, int]]:
    """The numbers of cases, each with a seed for what is drawn beside it."""
    number = max(len(seeds), min(cases, MAX_CASES))
    order = itertools.cycle(lasting_order(cases))
    return itertools.islice(zip(order, itertools.cycle(seeds), strict=False), number)


_NO_NUMBER = "an output has another shape, text, NaN or infinity than in float32"


class _Sample(NamedTuple):
    """The observations on one input: the largest error, the outputs that carry information, and
    whether the largest value of an output is in the same place."""

    relative: float
    telling: frozenset[str]
    agrees: dict[str, bool]

    def agreements(self, names: Collection[str]) -> list[bool]:
        """Returns for each of these outputs whether its largest value is in the same place."""
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

    def add(self, got: Sequence[Any], expected: Sequence[Any]) -> None:
        telling: set[str] = set()
        agrees: dict[str, bool] = {}
        largest = 0.0
        for name, ours, theirs in zip(self._names, got, expected, strict=True):
            for mine, reference in zip(arrays_in(ours), arrays_in(theirs), strict=True):
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

    def found(self) -> SampledErrors:
        """Returns the errors of the inputs on which an output that is not always the same carries
        information."""
        varying = {name for (name, _), each in self._arrays.items() if each.varies}
        telling = [at for at, each in enumerate(self._samples) if each.telling & varying]
        counting = [self._samples[at] for at in telling]
        told = {name for each in counting for name in each.telling & varying}
        moving = {name for (name, _), each in self._places.items() if each.moves}
        placed = [each.agreements(varying & moving) for each in counting]
        one_place = {name for each in counting for name in each.agrees} & (varying - moving)
        return SampledErrors(
            relative=tuple(each.relative for each in counting),
            agrees=tuple(all(each) for each in placed if each),
            saturated=tuple(name for name in self._names if name not in told),
            one_place=tuple(name for name in self._names if name in one_place),
            largest_of=_most(self._largest),
            disagrees=_most(self._moved),
            inputs=len(self._samples),
            telling=tuple(telling),
            mostly_saturated=tuple(each for each in self._bounded() if each.output in told),
        )

    def _bounded(self) -> Iterator[SaturatedOutput]:
        for name in self._names:
            arrays = [each for (of, _), each in self._arrays.items() if of == name]
            count = sum(each.elements for each in arrays)
            percent = 100 * sum(each.at_bounds for each in arrays) / count if count else 0.0
            if percent > _MOST_PERCENT:
                yield SaturatedOutput(output=name, percent=percent)


_MOST_PERCENT = 50.0
"""The percentage of elements at a bound above which an output is reported."""


def _most(counts: Mapping[str, float]) -> str:
    """The output with the most of it; '' where none has any."""
    name = max(counts, key=counts.__getitem__, default="")
    return name if counts.get(name) else ""


def _relative(got: Any, expected: Any) -> float:
    """Infinite for what is no error that has a size: another shape, text or NaN."""
    if got.shape != expected.shape:
        return float("inf")
    if not is_numeric(got) or not is_numeric(expected):
        return 0.0 if np.array_equal(got, expected) else float("inf")
    ours, theirs = got.astype("float64"), expected.astype("float64")
    others = ~(np.isfinite(ours) & np.isfinite(theirs))
    if not np.array_equal(ours[others], theirs[others], equal_nan=True):
        return float("inf")
    return errors(ours, theirs)[1]
