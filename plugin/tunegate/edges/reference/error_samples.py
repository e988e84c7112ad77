"""Samples of the error of a build: it and the reference run on the same inputs, one by one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tunegate.artifacts.sampled_errors import SampledErrors
from tunegate.edges.models.seeded_inputs import RuledTensor, seeded_inputs
from tunegate.edges.reference.comparison import DidNotRun
from tunegate.edges.reference.error_text import said
from tunegate.edges.reference.output_values import arrays_in
from tunegate.edges.reference.session import ReferenceSession
from tunegate.edges.reference.tolerance import errors, is_numeric

MAX_SAMPLING_SECONDS = 90.0
"""The longest that samples are taken: what comes later is not run."""


def sampled_errors(
    run: Callable[[Mapping[str, Any]], Sequence[Any]],
    reference: Path,
    inputs: Sequence[RuledTensor],
    names: Sequence[str],
    seeds: Sequence[int],
) -> SampledErrors | DidNotRun:
    """Runs the inputs of each seed through both. Where the inputs are the cases that the user gave,
    and nothing is drawn, each case counts once."""
    watch = _Watch(names)
    started, seen = time.monotonic(), set()
    try:
        session = ReferenceSession(reference)
        for case, seed in enumerate(seeds):
            feed = seeded_inputs(inputs, seed, case)
            drawn = tuple(np.asarray(each).tobytes() for each in feed.values())
            if hash(drawn) in seen:
                continue
            seen.add(hash(drawn))
            watch.add(run(feed), session.run(feed))
            if time.monotonic() - started > MAX_SAMPLING_SECONDS:
                break
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        return DidNotRun(said(error))
    return watch.found()


_NO_NUMBER = "an output has another shape, text, NaN or infinity than in float32"


class _Watch:
    """What the samples have shown so far."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._relative: list[float] = []
        self._agrees: list[bool] = []
        self._first: dict[str, Any] = {}
        self._telling: set[str] = set()
        self._largest = dict.fromkeys(names, 0.0)
        self._moved: Counter[str] = Counter()

    def add(self, got: Sequence[Any], expected: Sequence[Any]) -> None:
        largest, agrees, has_largest = 0.0, True, False
        for name, ours, theirs in zip(self._names, got, expected, strict=True):
            pairs = zip(arrays_in(ours), arrays_in(theirs), strict=True)
            for mine, reference in ((mine.array, other.array) for mine, other in pairs):
                self._look(name, reference)
                relative = _relative(mine, reference)
                largest = max(largest, relative)
                self._largest[name] = max(self._largest[name], relative)
                if _has_largest(reference):
                    has_largest = True
                    is_moved = not _agree(mine, reference)
                    agrees = agrees and not is_moved
                    self._moved[name] += is_moved
        if not np.isfinite(largest):
            raise ValueError(_NO_NUMBER)
        self._relative.append(largest)
        if has_largest:
            self._agrees.append(agrees)

    def _look(self, name: str, reference: Any) -> None:
        """An output tells an error where it is not saturated, and not always the same."""
        first = self._first.setdefault(name, reference)
        is_same = first.shape == reference.shape and np.array_equal(first, reference)
        if not _is_saturated(reference) and not is_same:
            self._telling.add(name)

    def found(self) -> SampledErrors:
        saturated = tuple(name for name in self._names if name not in self._telling)
        if not self._telling:
            return SampledErrors(saturated=saturated)
        return SampledErrors(
            relative=tuple(self._relative),
            agrees=tuple(self._agrees),
            saturated=saturated,
            largest_of=_most(self._largest),
            disagrees=_most(self._moved),
        )


def _most(counts: Mapping[str, float]) -> str:
    """The output with the most of it; '' where none has any."""
    name = max(counts, key=counts.__getitem__, default="")
    return name if counts.get(name) else ""


def _is_saturated(array: Any) -> bool:
    """Whether all its floats are exactly 0 or 1."""
    is_float = array.dtype.kind == "f" and array.size > 0
    return is_float and bool(np.all((array == 0) | (array == 1)))


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


def _has_largest(array: Any) -> bool:
    is_float = array.dtype.kind == "f"
    return bool(is_float and array.ndim > 0 and array.shape[-1] > 1 and array.size > 0)


def _agree(got: Any, expected: Any) -> bool:
    is_same_shape = bool(got.shape == expected.shape)
    return is_same_shape and bool(np.all(np.argmax(got, -1) == np.argmax(expected, -1)))
