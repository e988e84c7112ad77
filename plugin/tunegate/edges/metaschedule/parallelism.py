"""How many candidates of a run are timed at once on one device, batch by batch."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tunegate.edges.metaschedule.messages import Measured
from tunegate.edges.metaschedule.parallel_check import Believed
from tunegate.tuning.parallel_degree import Degree, adjusted

_WORTH_IT = 0.1
"""Share of the workers' time that goes in waiting for the device, from which on more at once would save
anything: on few cores the workers build most of the time, and nobody waits."""


class Parallelism:
    """DOPpler's law over the batches of one run; `slots` is what the device has."""

    def __init__(self, slots: int, first: int = 1) -> None:
        self._slots = slots
        self._degree = Degree(now=min(first, slots))
        self._most = self._degree.now
        self._errors: list[float] = []

    @property
    def at_once(self) -> int:
        return self._degree.now

    def note_alone(self, results: Sequence[Measured]) -> None:
        """A batch of which every candidate had the device to itself."""
        busy = sum(result.build_seconds + result.run_seconds for result in results)
        waited = sum(result.waited_seconds for result in results)
        if waited > _WORTH_IT * busy:
            self._adjust(error=0.0, failures=0)

    def note_beside(self, found: Believed) -> None:
        """A batch that was timed beside each other, and checked."""
        if found.error is not None:
            self._errors.append(found.error)
        self._adjust(error=found.error or 0.0, failures=found.failures)

    def notes(self) -> tuple[str, ...]:
        """For the report."""
        if self._most == 1:
            return ()
        off = f"{statistics.fmean(self._errors):.1%}" if self._errors else "unknown"
        note = (
            f"up to {self._most} candidates were timed at once; the check found their times off by "
            f"{off} on average, and they were corrected"
        )
        return (note,)

    def _adjust(self, *, error: float, failures: int) -> None:
        self._degree = adjusted(self._degree, error=error, failures=failures, most=self._slots)
        self._most = max(self._most, self._degree.now)
