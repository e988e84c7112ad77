"""The expected time of a run in words, for a terminal and a log."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.expected_steps import ExpectedStep
from tunegate.edges.progress.time_left import TimeLeft
from tunegate.plurals import plural

_MUCH_LOAD = 1.5
"""A load of so many times the cores: what was expected holds no more."""
_SECONDS_UP_TO, _HALF_MINUTES_UP_TO = 57.5, 570


def plan_line(steps: Sequence[ExpectedStep]) -> str:
    """The steps to come, and which of them a cap on tuning does not count."""
    tuning = [step.text for step in steps if step.kind == "tune"]
    others = ", ".join(step.text for step in steps if step.kind != "tune")
    total = f"about {rounded(sum(step.seconds for step in steps))} in all"
    if not tuning:
        return f"plan: {others}; {total}"
    then = f", then, beyond that cap, {others}" if others else ""
    return f"plan: {', '.join(tuning)}{then}; {total}"


def load_words(load: float, cores: int) -> str:
    """That the plan's times are of a quiet machine, where this one is far from it, else ''."""
    if load <= _MUCH_LOAD * cores:
        return ""
    told = f"the load is {load:.1f} on {plural(cores, 'core')}"
    return f"{told}: the plan's times are those of a quiet machine, here each step takes longer"


def time_left(left: TimeLeft, now: float) -> str:
    """The time that the run still takes. A part that takes longer than expected says for how long
    it has run, since nobody knows its end. Empty where nothing is known."""
    seconds = left.seconds(now)
    if seconds is None:
        return ""
    late = left.late(now)
    if late is None and left.ends_early:
        return f"at most {rounded(seconds)} left in all, less once tuning stops paying"
    if late is None:
        return f"about {rounded(seconds)} left in all"
    after = left.after_part(now)
    then = f", then about {rounded(after)}" if after else ""
    return f"longer than expected: {_exact(late)} so far{then}"


def rounded(seconds: float) -> str:
    """A duration that claims no more than is known: in steps of 5 s, of half a minute, and from ten
    minutes on of whole ones."""
    if seconds < _SECONDS_UP_TO:
        return f"{max(5, 5 * round(seconds / 5)):.0f} s"
    if seconds < _HALF_MINUTES_UP_TO:
        return f"{round(2 * seconds / 60) / 2:g} min"
    return f"{seconds / 60:.0f} min"


def _exact(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _SECONDS_UP_TO else f"{seconds / 60:.1f} min"
