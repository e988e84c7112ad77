"""The progress of a run through its expected steps, and the time it still needs."""

import math
from collections.abc import Sequence

from tunegate.artifacts.plans import ExpectedStep, StepKind
from tunegate.wording import plural

_LAST_SHARE, _OVERDUE_SHARE = 0.05, 0.25
"""The remaining time of a late part, as shares of its expected length and of its delay."""
_ALIKE = 0.25
"""The share of a step's excess that later steps are expected to have too: the machine may be slow,
or only this step was larger than expected."""
_FIRST_WEIGHT = 0.25
"""The weight of the expectation, in parts, against measured parts."""
_LATE_SECONDS, _LATE_SHARE = 5.0, 0.1
"""A part is late if its delay exceeds both: seconds, and a share of the expected time."""


class TimeLeft:
    """Estimates the time left, once steps are known. A skipped step or part counts as done. All
    times are readings of one clock."""

    def __init__(self) -> None:
        self._steps: Sequence[ExpectedStep] = ()
        self._at: int | None = None
        self._part, self._began = 0, 0.0
        self._took: list[float] = []
        self._slower = 1.0
        self._end: float | None = None
        self._told = 0.0

    def expect(self, steps: Sequence[ExpectedStep]) -> None:
        self._steps, self._at, self._slower = steps, None, 1.0

    def enter(self, kind: StepKind | None, now: float) -> None:
        """Enters the next part of the step of that kind, if it is expected; never goes back."""
        kinds = [step.kind for step in self._steps]
        place = kinds.index(kind) if kind in kinds else -1
        if self._at is not None and place == self._at:
            self._took.append(now - self._began)
            self._part, self._began = self._part + 1, now
        elif place > (-1 if self._at is None else self._at):
            self._slower = self._slower_after(now, 0.0)
            self._at, self._part, self._began, self._took = place, 0, now, []
        self._end = None

    def tell(self, seconds: float | None, now: float) -> None:
        """Takes the part's own report of the seconds that it still needs."""
        if seconds is not None:
            self._end, self._told = now + seconds, seconds

    @property
    def place(self) -> str:
        """Returns the position, such as `[2/4] `; empty if nothing is expected."""
        return "" if self._at is None else f"[{self._at + 1}/{len(self._steps)}] "

    def seconds(self, now: float) -> float | None:
        """Returns the seconds that the run still needs, None if unknown."""
        if self._at is None:
            return None
        return self._left_of_part(now) + self.after_part(now)

    def seconds_late(self, now: float) -> float | None:
        """Returns the seconds that the current part has taken if it is late, else None."""
        if self._at is None:
            return None
        seconds = self._expected_seconds()
        end = self._began + seconds
        if self._end is not None:
            end = self._end if self._is_certain else max(end, self._end)
        over = now - end
        is_late = over > max(_LATE_SECONDS, _LATE_SHARE * seconds)
        return now - self._began if is_late else None

    def _left_of_part(self, now: float) -> float:
        seconds = self._expected_seconds()
        seconds_left = _seconds_left(self._began + seconds, seconds, now)
        if self._end is None:
            return seconds_left
        if self._is_certain:
            return max(0.0, self._end - now)
        expected_seconds = _seconds_left(self._end, self._told, now)
        trust = self._trust(now)
        return math.pow(expected_seconds, trust) * math.pow(seconds_left, 1 - trust)

    def _trust(self, now: float) -> float:
        """Returns the weight of the part's own report against the expectation: half at its
        beginning, one once the expected time has passed."""
        seconds = self._expected_seconds()
        share = min(1.0, (now - self._began) / seconds) if seconds > 0 else 1.0
        return (1 + share**2) / 2

    def after_part(self, now: float) -> float:
        """Returns the seconds after the current part."""
        step = self._steps[self._at or 0]
        others = self._pace() * sum(step.parts[self._part + 1 :])
        still = self._left_of_part(now) + others
        later = sum(each.seconds for each in self._steps[(self._at or 0) + 1 :])
        return others + self._slower_after(now, still) * later

    def _expected_seconds(self) -> float:
        """Returns the expected seconds of the current part; an unexpected one counts as their
        mean."""
        parts = self._steps[self._at or 0].parts
        mean = sum(parts) / len(parts)
        return self._pace() * (parts[self._part] if self._part < len(parts) else mean)

    @property
    def ends_early(self) -> bool:
        """Returns whether the current step may end long before its cap."""
        return self._at is not None and self._steps[self._at].has_cap

    @property
    def _is_certain(self) -> bool:
        """Returns whether the step's own report is certain. A gate's is not: it may decide long
        before."""
        return self._steps[self._at or 0].kind == "tune"

    def _pace(self) -> float:
        """Returns the measured time of this step's finished parts, relative to the expected
        time."""
        parts = self._steps[self._at or 0].parts
        done_weight = sum(parts[: len(self._took)])
        weight = _FIRST_WEIGHT * max(parts, default=0.0)
        total = done_weight + weight
        return (sum(self._took) + self._slower * weight) / total if total else self._slower

    def _slower_after(self, now: float, still: float) -> float:
        """Returns the factor by which later steps are slower, from this step's time, `still`
        included. A step that reports its own end says nothing about the machine, nor does tuning,
        which ends at its cap."""
        if self._at is None or self._end is not None or self._is_certain:
            return self._slower
        plan_seconds = self._steps[self._at].seconds
        seconds = sum(self._took) + now - self._began + still
        excess = max(0.0, seconds - plan_seconds) / plan_seconds if plan_seconds else 0.0
        return max(self._slower, 1 + _ALIKE * excess)


def _seconds_left(end: float, length: float, now: float) -> float:
    """Returns the seconds left of a part of that length that should end at `end`, and may be
    late."""
    return max(end - now, _LAST_SHARE * length + _OVERDUE_SHARE * (now - end))


# The expected time of a run in words, for a terminal and a log.

_MUCH_LOAD = 1.5
"""The load per core above which the expected times no longer hold."""
_SECONDS_UP_TO, _HALF_MINUTES_UP_TO = 57.5, 570


def plan_line(steps: Sequence[ExpectedStep]) -> str:
    """Returns the steps to come, and which of them a cap on tuning does not include."""
    tuning = [step.text for step in steps if step.kind == "tune"]
    beyond = ", beyond that cap," if any(step.has_cap for step in steps) else ""
    others = ", ".join(step.text for step in steps if step.kind != "tune")
    total = f"about {round_duration(sum(step.seconds for step in steps))} in all"
    if not tuning:
        return f"plan: {others}; {total}"
    then = f", then{beyond} {others}" if others else ""
    return f"plan: {', '.join(tuning)}{then}; {total}"


def load_words(load: float, cores: int) -> str:
    """Returns that the plan assumes a quiet machine, if this one is far from it, else ''."""
    if load <= _MUCH_LOAD * cores:
        return ""
    load_text = f"the load is {load:.1f} on {plural(cores, 'core')}"
    return (
        f"{load_text}: the plan's times are those of a quiet machine, here each step takes longer"
    )


def time_left(remaining: TimeLeft, now: float) -> str:
    """Returns the time that the run still needs. For a part that is late it says how long it has
    run, since its end is unknown. Empty if nothing is known."""
    seconds = remaining.seconds(now)
    if seconds is None:
        return ""
    late = remaining.seconds_late(now)
    if late is None and remaining.ends_early:
        return f"at most {round_duration(seconds)} left in all, less once tuning stops paying"
    if late is None:
        return f"about {round_duration(seconds)} left in all"
    after = remaining.after_part(now)
    then = f", then about {round_duration(after)}" if after else ""
    return f"longer than expected: {_exact(late)} so far{then}"


def round_duration(seconds: float) -> str:
    """Returns a duration without false precision: in steps of 5 s, then of half a minute, and from
    ten minutes on of a minute."""
    if seconds < _SECONDS_UP_TO:
        return f"{max(5, 5 * round(seconds / 5)):.0f} s"
    if seconds < _HALF_MINUTES_UP_TO:
        return f"{round(2 * seconds / 60) / 2:g} min"
    return f"{seconds / 60:.0f} min"


def _exact(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _SECONDS_UP_TO else f"{seconds / 60:.1f} min"
