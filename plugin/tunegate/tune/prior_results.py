"""The results of a task from before the run: the cache's answer, and the claims of the run's own
zone."""

import math
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.outcomes import Older, TaskOutcome
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import ScheduleSource as Origin
from tunegate.tune.claims import has_only_older
from tunegate.tune.protocol import Schedule
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Miss,
    Toolchain,
    TransferHit,
    TuningRecord,
)

KEPT_IN_OUTCOME = 4
_LASTING_FAILURES = frozenset({"compile", "runtime", "wrong", "constraint"})


class PriorResults:
    """`device` and `toolchain` are those that the run measures with."""

    def __init__(
        self, planned_task: PlannedTask, device: DeviceFingerprint, toolchain: Toolchain
    ) -> None:
        self._task, self._lookup = planned_task.resolved.task, planned_task.resolved.lookup
        self._device, self._toolchain = device, toolchain
        if isinstance(self._lookup, ExactHit):
            # The planning machine may have ranked them for another device or toolchain.
            records = sorted(
                self._lookup.records,
                key=lambda record: (not self._is_here(record), not self._is_current(record)),
            )
            self._lookup = msgspec.structs.replace(self._lookup, records=tuple(records))
        self.claims = planned_task.resolved.claims
        self._is_settled = planned_task.resolved.is_settled
        self._is_searched = bool(planned_task.trials) and not self._is_settled
        self._skipped = planned_task.resolved.skipped

    @property
    def is_served(self) -> bool:
        """True if nothing runs for this task: the answer of trusted zones stays."""
        is_known = self.is_answered and not self._is_searched and not self.is_measured_only
        return is_known or bool(self._skipped)

    @property
    def is_measured_only(self) -> bool:
        """True if known schedules are measured here without a search: their times are from another
        device or compiler, or claims."""
        if self._skipped:
            return False
        if self._is_settled and self.claims is not None:
            return True
        return not self._is_searched and self._is_foreign

    @property
    def is_outdated(self) -> bool:
        """True if this run re-elects the task: its schedules, of an older toolchain or driver,
        against the default schedule of today."""
        return self._has_only_older and not self._is_searched and not self._skipped

    @property
    def is_answered(self) -> bool:
        return isinstance(self._lookup, ExactHit)

    @property
    def incumbent(self) -> Schedule | None:
        """The schedule that a claim must beat: the best one of trusted zones for this very task,
        with this toolchain."""
        if self.claims is None or not isinstance(self._lookup, ExactHit) or self._has_only_older:
            return None
        return schedule_of(self._lookup.records[0])

    def seeds(self) -> tuple[tuple[Origin, Schedule], ...]:
        """Returns the schedules to try before any search, without those that have lost to the
        default schedule with this toolchain."""
        claims = self.claims.records if self.claims is not None else ()
        candidates: list[tuple[Origin, TuningRecord]] = []
        slow = self._slower_than_default()
        match self._lookup:
            case ExactHit(records=records) if self._has_only_older:
                unbeaten = [record for record in records if record.template and record not in slow]
                candidates = [("exact", record) for record in unbeaten[:1]]
            case ExactHit(records=records):
                best = records[:1] if self._is_settled else records
                candidates = [("exact", record) for record in best]
            case TransferHit(records=records) if not self._is_settled:
                candidates = [("transfer", record) for record in records]
            case _:
                pass
        candidates += [("own-zone" if self._is_own(r) else "transfer", r) for r in claims]
        return tuple(
            (origin, schedule_of(record))
            for origin, record in candidates
            if record.template and record not in slow
        )

    def _slower_than_default(self) -> tuple[TuningRecord, ...]:
        """Returns the records that are slower than the default schedule's, both of today."""
        records = () if isinstance(self._lookup, Miss) else self._lookup.records
        today = [r for r in records if self._is_own(r) and self._is_current(r)]
        default = min((r.median_ms for r in today if not r.template), default=math.inf)
        return tuple(r for r in today if r.template and r.median_ms > default)

    def failed_schedules(self) -> tuple[Schedule, ...]:
        """Returns schedules that failed to build, run or compute right with this compiler. One that
        was only too slow then may be in time today."""
        return tuple(
            schedule_of(record)
            for record in self._lookup.failures
            if record.template
            and record.status in _LASTING_FAILURES
            and record.toolchain == self._toolchain
        )

    def outcome(self) -> TaskOutcome:
        """Returns the outcome of a task for which nothing runs: the answer of trusted zones."""
        lookup = self._lookup
        records = lookup.records if isinstance(lookup, (ExactHit, TransferHit)) else ()
        is_known = isinstance(lookup, ExactHit) and bool(records) and not self._has_only_older
        best_ms = records[0].median_ms if is_known else None
        unproven_source: Origin = "older" if self._has_only_older else "transfer"
        source: Origin = "exact" if is_known else unproven_source if records else "default"
        return TaskOutcome(
            key=self._task.key,
            target=self._task.target,
            name=self._task.uses[0].name,
            source=source,
            records=records[:KEPT_IN_OUTCOME],
            trials=0,
            before_ms=best_ms,
            best_ms=best_ms,
            seconds=0.0,
            stopped="exact" if is_known else self._skipped or "not-started",
            older="not-asked" if self._has_only_older and self._skipped != "behind" else "",
        )

    def result(self, origins: Sequence[Origin]) -> Older:
        """Returns the result for schedules of an older toolchain, by where this run's confirmed
        ones came from, best first. A claim may be faster than either of the two."""
        if not self.is_outdated or not isinstance(self._lookup, ExactHit):
            return ""
        if next((each for each in origins if each in ("exact", "default")), "") == "exact":
            return "kept"
        return "lost" if self._lookup.records[0].template else "still-lost"

    @property
    def _is_foreign(self) -> bool:
        if not isinstance(self._lookup, ExactHit) or not self._lookup.records:
            return False
        return not self._is_here(self._lookup.records[0]) or self._has_only_older

    @property
    def _has_only_older(self) -> bool:
        """True if trusted zones have schedules of this very task, and none of them was confirmed
        with this toolchain and driver."""
        if not isinstance(self._lookup, ExactHit):
            return False
        return has_only_older(self._lookup.records, self._toolchain, self._device)

    def _is_here(self, record: TuningRecord) -> bool:
        return record.device.name == self._device.name

    def _is_current(self, record: TuningRecord) -> bool:
        return record.is_timed_by(self._toolchain, self._device.driver)

    def _is_own(self, record: TuningRecord) -> bool:
        return record.key == self._task.key


def schedule_of(record: TuningRecord) -> Schedule:
    return Schedule(record.template, record.decisions)
