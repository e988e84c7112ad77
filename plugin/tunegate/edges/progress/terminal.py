"""Progress on a terminal: one live line, and a bar for the whole run once there is a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind
from tunegate.edges.progress.time_left import TimeLeft
from tunegate.edges.progress.words import plan_line, time_left

_BAR_COLUMNS = 16


class Terminal:
    """One live line for the step under way; finished steps stay above it with their time."""

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
        """End the live line; must come before anything else is printed."""
        if self._live is None:
            return
        self._live.stop()
        self._live = None
        seconds = self._clock() - self._entered
        self._console.print(
            Text.assemble(("✓ ", "green"), self._step, (f" {seconds:.1f} s", "dim"))
        )

    def _line(self) -> RenderableType:
        """Drawn anew four times a second, so that time is seen to pass."""
        now = self._clock()
        line = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = [
            self._spinner,
            Text.assemble(self._step, (f" {self._text}" if self._text else "", "dim")),
        ]
        left = self._left.seconds(now)
        if left is None:
            return _row(line, [*cells, Text(f"{now - self._entered:.0f} s", "dim")])
        spent = now - self._planned
        self._share_done = max(self._share_done, spent / max(spent + left, 1e-9))
        bar = ProgressBar(total=1.0, completed=self._share_done, width=_BAR_COLUMNS)
        return _row(line, [*cells, bar, Text(time_left(self._left, now), "dim")])


def _row(line: Table, cells: Sequence[RenderableType]) -> Table:
    line.add_row(*cells)
    return line
