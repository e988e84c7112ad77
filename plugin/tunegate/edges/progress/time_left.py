"""The place of a run among its expected steps, and the time that it still takes."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.expected_steps import ExpectedStep, StepKind

_SECONDS_UP_TO, _HALF_MINUTES_UP_TO = 57.5, 570
_LAST_SHARE, _OVERDUE_SHARE = 0.05, 0.25
"""What is left of a step that takes longer than expected: the one share of what was expected, and
the other of what it took beyond that."""
_ALIKE = 0.25
"""The share of a step's excess that the later ones are expected to have too: the machine may be
slow, or this step alone was larger than expected."""


class TimeLeft:
    """Knows nothing until there are steps. A step that was skipped is done."""

    def __init__(self) -> None:
        self._steps: Sequence[ExpectedStep] = ()
        self._at: int | None = None
        self._end: float | None = None

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._steps, self._at = steps, None

    def enter(self, kind: StepKind | None) -> None:
        """Goes to the step of that kind, if it is expected, and never back."""
        kinds = [step.kind for step in self._steps]
        self._end = None
        if kind in kinds:
            self._at = max(self._at or 0, kinds.index(kind))

    def tell(self, seconds: float | None, elapsed_seconds: float) -> None:
        """Takes what the step itself knows of the seconds that it still needs."""
        self._end = self._end if seconds is None else elapsed_seconds + seconds

    @property
    def place(self) -> str:
        """Such as `[2/4] `; empty where nothing is expected."""
        return "" if self._at is None else f"[{self._at + 1}/{len(self._steps)}] "

    def seconds(self, elapsed_seconds: float) -> float | None:
        """What the run still takes, `elapsed_seconds` after its step began; None where nobody
        knows."""
        if self._at is None:
            return None
        expected = self._steps[self._at].seconds
        later = sum(step.seconds for step in self._steps[self._at + 1 :])
        if self._end is not None:
            return max(0.0, self._end - elapsed_seconds) + later
        over = elapsed_seconds - expected
        own = max(-over, _LAST_SHARE * expected + _OVERDUE_SHARE * over)
        excess = max(0.0, elapsed_seconds + own - expected) / expected if expected else 0.0
        return own + (1 + _ALIKE * excess) * later


def rounded(seconds: float) -> str:
    """A duration that claims no more than is known: in steps of 5 s, of half a minute, and from ten
    minutes on of whole ones."""
    if seconds < _SECONDS_UP_TO:
        return f"{max(5, 5 * round(seconds / 5)):.0f} s"
    if seconds < _HALF_MINUTES_UP_TO:
        return f"{round(2 * seconds / 60) / 2:g} min"
    return f"{seconds / 60:.0f} min"
