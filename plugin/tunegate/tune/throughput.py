"""The throughput of a tuning run: the cost of a candidate, who was busy, and whom the others waited
for.

Candidates go through two queues, one after the other: search children find them, workers build and
time them. So the run is as fast as the slower of both, and the search keeps up where its children
find as many candidates as the workers take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tunegate.tune.protocol import Measured

_ENOUGH = 8
"""The candidates from which on their costs are known: the first of each task pays for its space."""
_MOST_SHARE = 0.5
"""The share of the cores that may search: what is found must also be built."""


class Throughput:
    """Of one run with so many workers on so many cores."""

    def __init__(self, workers: int, cores: int) -> None:
        self._workers, self._cores = workers, cores
        self._found = self._measured = 0
        self._search_seconds = self._build_seconds = self._device_seconds = 0.0
        self._waited_for_device = 0.0
        self._waits = {"search": 0.0, "workers": 0.0}
        self._busy_percents: list[float] = []

    def note_proposal(self, seconds: float, candidates: int) -> None:
        self._search_seconds += seconds
        self._found += candidates

    def note_result(self, measured: Measured) -> None:
        self._measured += 1
        self._build_seconds += measured.build_seconds
        self._device_seconds += max(0.0, measured.run_seconds - measured.waited_seconds)
        self._waited_for_device += measured.waited_seconds

    def note_wait(self, seconds: float, *, has_idle_worker: bool) -> None:
        """The run has waited: for candidates where a worker had none, else for the workers."""
        self._waits["search" if has_idle_worker else "workers"] += seconds

    def note_busy(self, percent: float | None) -> None:
        """The GPUs were busy for so much of the last moment; None where nobody knows."""
        if percent is not None:
            self._busy_percents.append(percent)

    def searchers(self, now: int) -> int:
        """The children that must search for the workers to have enough, of which there are so many
        `now`: as many candidates as the workers take in a second, times the seconds that one takes
        to be found."""
        if min(self._found, self._measured) < _ENOUGH:
            return now
        of_worker = (self._build_seconds + self._device_seconds) / self._measured
        if not of_worker:
            return now
        wanted = math.ceil(self._workers * self._search_seconds / self._found / of_worker)
        return max(now, min(wanted, int(_MOST_SHARE * self._cores)))

    def notes(self) -> tuple[str, ...]:
        """A line for the report; none where nothing was measured."""
        seconds = sum(self._waits.values())
        if not self._measured or seconds <= 0:
            return ()
        return ("; ".join(self._told(seconds)),)

    def _told(self, seconds: float) -> Iterator[str]:
        busy = (self._build_seconds + self._search_seconds) / seconds
        yield f"{self._measured / seconds:.1f} candidates a second in {seconds:.0f} s of tuning"
        yield (
            f"{min(busy, self._cores):.1f} of {self._cores} cores{self._gpu()} were busy (a "
            "candidate took "
            f"{self._search_seconds / max(1, self._found):.2f} s to find and "
            f"{self._build_seconds / self._measured:.2f} s to build), and candidates ran for "
            f"{self._device_seconds:.0f} s"
        )
        by_whom = ((self._waits["search"], "the search"), (self._waits["workers"], "builds"))
        waited = [f"{whom} {part / seconds:.0%}" for part, whom in by_whom]
        yield (
            f"waited for: {', '.join(waited)} of the time; workers {self._waited_for_device:.0f} s "
            "for the device"
        )

    def _gpu(self) -> str:
        if not self._busy_percents:
            return ""
        mean = sum(self._busy_percents) / len(self._busy_percents)
        return f" and {mean:.0f}% of the GPU's time"
