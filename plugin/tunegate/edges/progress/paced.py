"""Steps that are expected to take as long as they took in earlier runs on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind
from tunegate.edges.progress.choice import Both, Shown, progress
from tunegate.ports import Progress
from tunegate.regular_files import read_regular, replace

_LEAST, _MOST = 0.1, 20.0
"""The limits of a pace. A machine that was asleep says nothing of the next run."""
_MOST_KEPT = 200


class Paced:
    """A progress that knows the paces in a file, and keeps what a finished run took. A pace is the
    time that a step took, over what was expected of it. Tuning has none: it ends at its cap."""

    def __init__(
        self, shown: Shown | Both, file: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shown, self._file, self._clock = shown, file, clock
        self._expected: dict[StepKind, ExpectedStep] = {}
        self._under_way: ExpectedStep | None = None
        self._began = 0.0
        self._measured: dict[str, float] = {}

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._expected = {step.kind: step for step in steps if step.kind != "tune"}
        self._under_way = None
        paces = read_paces(self._file)
        self._shown.expect([_at_pace(step, paces) for step in steps])

    def step(self, text: str, kind: StepKind | None = None) -> None:
        if kind is not None and (self._under_way is None or kind != self._under_way.kind):
            self._take()
            self._under_way, self._began = self._expected.get(kind), self._clock()
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
            for name, pace in self._measured.items():
                before = paces.pop(name, pace)  # the latest are the last: the first are dropped
                paces[name] = (before * pace) ** 0.5
            kept = dict([*paces.items()][-_MOST_KEPT:])
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                replace(self._file, msgspec.json.encode(kept))

    def _take(self) -> None:
        step, self._under_way = self._under_way, None
        if step is None or not step.seconds:
            return
        pace = min(_MOST, max(_LEAST, (self._clock() - self._began) / step.seconds))
        self._measured |= {step.kind: pace, _name(step): pace}


@contextmanager
def paced_progress(file: Path) -> Iterator[Paced]:
    """The right kind of progress, with the paces in this file, until the run ends."""
    paced = Paced(progress(), file)
    try:
        yield paced
    finally:
        paced.close()
    paced.finished()


def read_paces(file: Path) -> dict[str, float]:
    """The paces in a file by step; none where it cannot be read."""
    try:
        content = read_regular(file)
        found = msgspec.json.decode(content, type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}
    return {name: min(_MOST, max(_LEAST, pace)) for name, pace in found.items()}


def _at_pace(step: ExpectedStep, paces: dict[str, float]) -> ExpectedStep:
    if step.kind == "tune":
        return step
    pace = paces.get(_name(step), paces.get(step.kind, 1.0))
    return msgspec.structs.replace(step, parts=tuple(pace * each for each in step.parts))


def _name(step: ExpectedStep) -> str:
    return f"{step.kind}: {step.subject}"


_: type[Progress] = Paced
