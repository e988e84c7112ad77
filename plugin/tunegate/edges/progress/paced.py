"""Steps that are expected to take as long as they took in earlier runs on this machine."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind
from tunegate.edges.progress.choice import Both, Shown, progress
from tunegate.edges.progress.words import load_words
from tunegate.ports import Progress
from tunegate.regular_files import read_regular, replace

_LEAST, _MOST = 0.02, 50.0
"""The limits of a pace. A machine that was asleep says nothing of the next run."""
_MOST_KEPT = 200


Paces = dict[str, tuple[float, ...]]
"""The pace of each part by step; under a kind alone one of all steps of that kind."""


class Paced:
    """A progress that knows the paces in a file, and keeps what a finished run took. A pace is the
    time that a part of a step took, over what was expected of it. Tuning has none: it ends at its
    cap. `busy` is told beside the plan."""

    def __init__(
        self,
        shown: Shown | Both,
        file: Path,
        clock: Callable[[], float] = time.monotonic,
        busy: str = "",
    ) -> None:
        self._shown, self._file, self._clock, self._busy = shown, file, clock, busy
        self._expected: dict[StepKind, ExpectedStep] = {}
        self._under_way: ExpectedStep | None = None
        self._began: list[float] = []
        self._measured: Paces = {}

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._expected = {step.kind: step for step in steps if step.kind != "tune"}
        self._under_way = None
        paces = read_paces(self._file)
        self._shown.expect([_at_pace(step, paces) for step in steps])
        if steps and self._busy:
            self._shown.warn(self._busy)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        if kind is not None:
            if self._under_way is None or kind != self._under_way.kind:
                self._take()
                self._under_way, self._began = self._expected.get(kind), []
            self._began.append(self._clock())
        self._shown.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        self._shown.update(text, seconds_left)

    def warn(self, text: str) -> None:
        self._shown.warn(text)

    def close(self) -> None:
        self._shown.close()

    def finished(self) -> None:
        """Keeps the paces of a run that came to its end. A file that cannot be written costs the
        next run an estimate."""
        self._take()
        if self._measured:
            paces = read_paces(self._file)
            for name, measured in self._measured.items():
                before = paces.pop(name, ())  # the latest are the last: the first are dropped
                paces[name] = _between(before, measured)
            kept = dict([*paces.items()][-_MOST_KEPT:])
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                replace(self._file, msgspec.json.encode(kept))

    def _take(self) -> None:
        step, self._under_way = self._under_way, None
        if step is None or not step.seconds:
            return
        ends = [*self._began[1:], self._clock()]
        took = [end - began for began, end in zip(self._began, ends, strict=True)]
        self._measured[step.kind] = (_bounded(sum(took) / step.seconds),)
        if len(took) == len(step.parts) and all(step.parts):
            paces = zip(took, step.parts, strict=True)
            self._measured[_name(step)] = tuple(_bounded(each / part) for each, part in paces)


@contextmanager
def paced_progress(file: Path) -> Iterator[Paced]:
    """The right kind of progress, with the paces in this file, until the run ends."""
    busy = load_words(os.getloadavg()[0], os.cpu_count() or 1)
    paced = Paced(progress(), file, busy=busy)
    try:
        yield paced
    finally:
        paced.close()
    paced.finished()


def read_paces(file: Path) -> Paces:
    """The paces in a file; none where it cannot be read."""
    try:
        found = msgspec.json.decode(read_regular(file), type=Paces)
    except (OSError, msgspec.DecodeError):
        return {}
    return {name: tuple(map(_bounded, paces)) for name, paces in found.items() if paces}


def _at_pace(step: ExpectedStep, paces: Paces) -> ExpectedStep:
    """The step as it was when it had the same parts. Other models say less of it: the root of the
    pace of its kind."""
    if step.kind == "tune":
        return step
    own = paces.get(_name(step), ())
    if len(own) != len(step.parts):
        own = (math.sqrt(paces.get(step.kind, (1.0,))[0]),) * len(step.parts)
    parts = tuple(pace * each for pace, each in zip(own, step.parts, strict=True))
    return msgspec.structs.replace(step, parts=parts)


def _between(before: tuple[float, ...], now: tuple[float, ...]) -> tuple[float, ...]:
    """The geometric means, so that the latest run counts like all before it."""
    if len(before) != len(now):
        return now
    return tuple(math.sqrt(old * new) for old, new in zip(before, now, strict=True))


def _bounded(pace: float) -> float:
    return min(_MOST, max(_LEAST, pace))


def _name(step: ExpectedStep) -> str:
    return f"{step.kind}: {step.subject}"


_: type[Progress] = Paced
