"""The number of candidates of each task that are timed at once on one device, batch by batch."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tunegate.engine.parallel_check import CheckedBatch
from tunegate.engine.protocol import Measured
from tunegate.tuning.parallelism.degree import Degree, adjusted

_WORTH_IT = 0.1
"""Share of the workers' time that goes in waiting for the device, from which on more at once would
save anything: on few cores the workers build most of the time, and nobody waits."""


class Parallelism:
    """DOPpler's law, with a state for each task as in the source: kernels that share what the
    device has little of disturb each other more than others do. Batches of a run are too few
    for every task to begin with one at a time, so a task begins where the last one stands.
    `slots` is what the device has."""

    def __init__(self, slots: int, first: int = 1) -> None:
        self._slots = slots
        self._latest = Degree(now=min(first, slots))
        self._degrees: dict[str, Degree] = {}
        self._most = self._latest.now
        self._errors: list[float] = []

    def at_once(self, workload: str) -> int:
        return self._degree_of(workload).now

    def note_alone(self, workload: str, results: Sequence[Measured]) -> None:
        """A batch of which every candidate had the device to itself."""
        busy = sum(result.build_seconds + result.run_seconds for result in results)
        waited = sum(result.waited_seconds for result in results)
        if waited > _WORTH_IT * busy:
            self._adjust(workload, error=0.0, failures=0)

    def note_beside(self, workload: str, found: CheckedBatch) -> None:
        """A batch that was timed beside each other, and checked."""
        if found.error is not None:
            self._errors.append(found.error)
        self._adjust(workload, error=found.error or 0.0, failures=found.failures)

    def notes(self) -> tuple[str, ...]:
        """Lines for the report."""
        if self._most == 1:
            return ()
        at_once = f"up to {self._most} candidates were timed at once"
        if not self._errors:
            return (f"{at_once}; too few were timed again alone to tell by how much that is off",)
        off = f"{statistics.fmean(self._errors):.1%}"
        checked = f"the check found their times off by {off} on average, and they were corrected"
        return (f"{at_once}; {checked}",)

    def _adjust(self, workload: str, *, error: float, failures: int) -> None:
        before = self._degree_of(workload)
        self._latest = adjusted(before, error=error, failures=failures, most=self._slots)
        self._degrees[workload] = self._latest
        self._most = max(self._most, self._latest.now)

    def _degree_of(self, workload: str) -> Degree:
        return self._degrees.get(workload, self._latest)
