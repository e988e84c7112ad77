"""Shows progress, with times expected from earlier runs on this machine."""

from __future__ import annotations

import io
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TextIO

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.artifacts.plans import ExpectedStep, StepKind
from tunegate.ports import Progress
from tunegate.regular_files import read_regular, replace
from tunegate.system.output.log_file import Talk
from tunegate.system.processes.signals import raise_if_cancelled
from tunegate.system.progress.time_left import TimeLeft, load_words, plan_line, time_left

_LEAST, _MOST = 0.02, 50.0
"""The limits of a pace. A machine that was asleep says nothing about the next run."""
_MOST_KEPT = 200


Paces = dict[str, tuple[float, ...]]
"""The pace of each part of each step; a kind alone has one pace for all its steps."""


class Paced:
    """A progress that knows the paces in a file, and saves those of a finished run. A pace is a
    part's time relative to the expected one. Tuning has none: it ends at its cap. `busy` is shown
    beside the plan."""

    def __init__(
        self,
        view: ProgressView | Both,
        file: Path,
        clock: Callable[[], float] = time.monotonic,
        busy: str = "",
    ) -> None:
        self._view, self._file, self._clock, self._busy = view, file, clock, busy
        self._expected: dict[StepKind, ExpectedStep] = {}
        self._under_way: ExpectedStep | None = None
        self._began: list[float] = []
        self._measured: Paces = {}

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._expected = {step.kind: step for step in steps if step.kind != "tune"}
        self._under_way = None
        paces = read_paces(self._file)
        self._view.expect([_pace_step(step, paces) for step in steps])
        if steps and self._busy:
            self._view.warn(self._busy)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        raise_if_cancelled()
        if kind is not None:
            if self._under_way is None or kind != self._under_way.kind:
                self._take()
                self._under_way, self._began = self._expected.get(kind), []
            self._began.append(self._clock())
        self._view.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        self._view.update(text, seconds_left)

    def warn(self, text: str) -> None:
        self._view.warn(text)

    def close(self) -> None:
        self._view.close()

    def save_paces(self) -> None:
        """Saves the paces of a run that finished. A file that cannot be written only costs the next
        run an estimate."""
        self._take()
        if self._measured:
            paces = read_paces(self._file)
            for name, latest in self._measured.items():
                before = paces.pop(name, ())  # the latest are the last: the first are dropped
                paces[name] = _between(before, latest)
            latest_paces = dict([*paces.items()][-_MOST_KEPT:])
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                replace(self._file, msgspec.json.encode(latest_paces))

    def _take(self) -> None:
        step, self._under_way = self._under_way, None
        if step is None or not step.seconds:
            return
        ends = [*self._began[1:], self._clock()]
        took = [end - began for began, end in zip(self._began, ends, strict=True)]
        self._measured[step.kind] = (_clamp(sum(took) / step.seconds),)
        if len(took) == len(step.parts) and all(step.parts):
            paces = zip(took, step.parts, strict=True)
            self._measured[_name(step)] = tuple(_clamp(each / part) for each, part in paces)


@contextmanager
def paced_progress(file: Path) -> Iterator[Paced]:
    """Yields the right kind of progress, with the paces in this file, until the run ends."""
    busy = load_words(os.getloadavg()[0], os.cpu_count() or 1)
    pacing = Paced(progress(), file, busy=busy)
    try:
        yield pacing
    finally:
        pacing.close()
    pacing.save_paces()


def read_paces(file: Path) -> Paces:
    """Returns the paces in a file, none if it cannot be read."""
    try:
        paces_of_steps = msgspec.json.decode(read_regular(file), type=Paces)
    except (OSError, *NOT_JSON):
        return {}
    return {name: tuple(map(_clamp, paces)) for name, paces in paces_of_steps.items() if paces}


def _pace_step(step: ExpectedStep, paces: Paces) -> ExpectedStep:
    """Returns the step at the pace it had with the same parts; else, as other models tell less, at
    the square root of its kind's pace."""
    if step.kind == "tune":
        return step
    own = paces.get(_name(step), ())
    if len(own) != len(step.parts):
        own = (math.sqrt(paces.get(step.kind, (1.0,))[0]),) * len(step.parts)
    parts = tuple(pace * each for pace, each in zip(own, step.parts, strict=True))
    return msgspec.structs.replace(step, parts=parts)


def _between(before: tuple[float, ...], now: tuple[float, ...]) -> tuple[float, ...]:
    """Returns the geometric means, so that the latest run counts as much as all before it."""
    if len(before) != len(now):
        return now
    return tuple(math.sqrt(old * new) for old, new in zip(before, now, strict=True))


def _clamp(pace: float) -> float:
    return min(_MOST, max(_LEAST, pace))


def _name(step: ExpectedStep) -> str:
    return f"{step.kind}: {step.subject}"


_: type[Progress] = Paced


# Progress as plain lines: one for each step, and a sign of life in each silence.

MAX_SILENT_SECONDS = 10.0


class Lines(Protocol):
    """A sink for the lines of a log."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> None: ...


class PlainLog:
    """One line per step with the seconds since the start. Updates are thinned out: a long step
    shows life without filling the log."""

    def __init__(
        self,
        stream: Lines,
        clock: Callable[[], float] = time.monotonic,
        update_seconds: float = MAX_SILENT_SECONDS,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._update_seconds = update_seconds
        self._started = self._shown_at = self._entered = clock()
        self._text = ""
        self._left = TimeLeft()
        self._lock = threading.RLock()

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        with self._lock:
            self._left.expect(steps)
            self._line(plan_line(steps))

    def step(self, text: str, kind: StepKind | None = None) -> None:
        with self._lock:
            self._entered, self._text = self._clock(), ""
            self._left.enter(kind, self._entered)
            self._line(f"{self._left.place}{text}")

    def update(self, text: str, seconds_left: float | None = None) -> None:
        with self._lock:
            self._left.tell(seconds_left, self._clock())
            self._text = text
            if self._clock() - self._shown_at >= self._update_seconds:
                self._line(f"  {text}{self._end()}")

    def pulse(self) -> None:
        """Shows that the step goes on, after a long silence."""
        with self._lock:
            if self._clock() - self._shown_at >= MAX_SILENT_SECONDS:
                now = self._clock()
                # What is late says itself how long it has taken.
                is_late = self._left.seconds_late(now) is not None
                so_far = "" if is_late else f"{now - self._entered:.0f} s so far"
                time_text = time_left(self._left, now)
                self._line("  " + "; ".join(filter(None, (self._text or so_far, time_text))))

    def warn(self, text: str) -> None:
        with self._lock:
            self._line(f"warning: {text}")

    def close(self) -> None:
        self._stream.flush()

    def _end(self) -> str:
        time_text = time_left(self._left, self._clock())
        return f"; {time_text}" if time_text else ""

    def _line(self, text: str) -> None:
        self._shown_at = self._clock()
        # It may hold names of the model: on their own line, a CI would read them as commands.
        line = "".join(c if c.isprintable() else " " for c in text)
        self._stream.write(f"tunegate {self._shown_at - self._started:7.1f} s  {line}\n")
        self._stream.flush()


class Pulsed:
    """A log with a thread that gives a sign of life while it is open."""

    def __init__(self, log: PlainLog, seconds: float = 1.0) -> None:
        self._log, self._seconds = log, seconds
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._log.expect(steps)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        self._log.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        self._log.update(text, seconds_left)

    def warn(self, text: str) -> None:
        self._log.warn(text)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._log.close()

    def _beat(self) -> None:
        while not self._is_over.wait(self._seconds):
            self._log.pulse()


# Progress on a terminal: one live line, and a bar for the whole run once there is a plan.

_BAR_COLUMNS = 16


class Terminal:
    """One live line for the current step; finished steps stay above it with their time."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = Console(file=stream, highlight=False)
        self._clock = clock
        self._spinner = Spinner("dots")
        self._live: Live | None = None
        self._step = self._text = ""
        self._left = TimeLeft()
        self._entered = self._planned = clock()
        self._share_done = 0.0

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self.close()
        self._left.expect(steps)
        self._planned, self._share_done = self._clock(), 0.0
        self._console.print(Text(plan_line(steps)))

    def step(self, text: str, kind: StepKind | None = None) -> None:
        self.close()
        self._entered = self._clock()
        self._left.enter(kind, self._entered)
        self._step, self._text = f"{self._left.place}{text}", ""
        self._live = Live(
            get_renderable=self._line,
            console=self._console,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def update(self, text: str, seconds_left: float | None = None) -> None:
        if self._live is None:
            self.step(text)
        self._left.tell(seconds_left, self._clock())
        self._text = text

    def warn(self, text: str) -> None:
        self._console.print(Text.assemble(("warning: ", "yellow"), text))

    def close(self) -> None:
        """Ends the live line; must be called before anything else is printed."""
        if self._live is None:
            return
        self._live.stop()
        self._live = None
        seconds = self._clock() - self._entered
        self._console.print(
            Text.assemble(("✓ ", "green"), self._step, (f" {seconds:.1f} s", "dim"))
        )

    def _line(self) -> RenderableType:
        """Renders the line, four times a second, so that time visibly passes."""
        now = self._clock()
        line = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = [
            self._spinner,
            Text.assemble(self._step, (f" {self._text}" if self._text else "", "dim")),
        ]
        seconds_left = self._left.seconds(now)
        if seconds_left is None:
            return _row(line, [*cells, Text(f"{now - self._entered:.0f} s", "dim")])
        seconds = now - self._planned
        self._share_done = max(self._share_done, seconds / max(seconds + seconds_left, 1e-9))
        bar = ProgressBar(total=1.0, completed=self._share_done, width=_BAR_COLUMNS)
        return _row(line, [*cells, bar, Text(time_left(self._left, now), "dim")])


def _row(line: Table, cells: Sequence[RenderableType]) -> Table:
    line.add_row(*cells)
    return line


# Chooses the display: a live line on a terminal, plain lines in a log. Everything here goes to
# stderr; stdout belongs to the product.

ProgressView = Terminal | PlainLog | Pulsed


def progress(stream: TextIO | Talk | None = None) -> ProgressView | Both:
    """Returns the progress for where stderr goes, and for the command line's options."""
    target = stream if stream is not None else sys.stderr
    if not isinstance(target, Talk):
        return _terminal_or_log(target)
    view = _display_for(target)
    return view if target.log is None else Both(view, PlainLog(target.log, update_seconds=0.0))


def unread_progress() -> PlainLog:
    """Returns progress that nobody reads."""
    return PlainLog(io.StringIO())


def _display_for(talk: Talk) -> ProgressView:
    if talk.is_quiet:
        return unread_progress()
    if talk.is_verbose:
        return Pulsed(PlainLog(talk.stream, update_seconds=0.0))
    return _terminal_or_log(talk.stream)


def _terminal_or_log(stream: TextIO) -> Terminal | Pulsed:
    return Terminal(stream) if stream.isatty() else Pulsed(PlainLog(stream))


class Both:
    """The display and the log file together."""

    def __init__(self, view: ProgressView, log: PlainLog) -> None:
        self._parts = (view, log)

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        for part in self._parts:
            part.expect(steps)

    def step(self, text: str, kind: StepKind | None = None) -> None:
        for part in self._parts:
            part.step(text, kind)

    def update(self, text: str, seconds_left: float | None = None) -> None:
        for part in self._parts:
            part.update(text, seconds_left)

    def warn(self, text: str) -> None:
        for part in self._parts:
            part.warn(text)

    def close(self) -> None:
        for part in self._parts:
            part.close()


_choice: tuple[type[Progress], ...] = (Terminal, PlainLog, Pulsed, Both)
