"""The results of a task from before the run: the cache's answer, and the claims of the run's own
zone."""

from __future__ import annotations

from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import ScheduleSource as Origin
from tunegate.tune.claims import is_settled
from tunegate.tune.protocol import Schedule
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Toolchain,
    TransferHit,
    TuningRecord,
)

KEPT_IN_OUTCOME = 4
_LASTING_FAILURES = frozenset({"compile", "runtime", "wrong", "constraint"})


class PriorResults:
    """`device` and `toolchain` are those that the run measures with."""

    def __init__(
        self, planned: PlannedTask, device: DeviceFingerprint, toolchain: Toolchain
    ) -> None:
        self._task, self._lookup = planned.resolved.task, planned.resolved.lookup
        self._device, self._toolchain = device, toolchain
        self.claims = planned.resolved.claims
        self._is_settled = is_settled(planned.resolved)
        self._skipped = planned.resolved.skipped

    @property
    def is_served(self) -> bool:
        """Whether nothing runs for this task: the answer of trusted zones stays."""
        is_known = isinstance(self._lookup, ExactHit) and not self.is_measured_only
        return is_known or bool(self._skipped)

    @property
    def is_measured_only(self) -> bool:
        """Whether known schedules are measured here without a search: their times are from another
        device or compiler, or claims."""
        if self._skipped:
            return False
        return self._is_settled and (self.claims is not None or self._is_foreign)

    @property
    def is_answered(self) -> bool:
        return isinstance(self._lookup, ExactHit)

    @property
    def incumbent(self) -> Schedule | None:
        """The schedule that a claim must beat: the best one of trusted zones for this very task."""
        if self.claims is None or not isinstance(self._lookup, ExactHit):
            return None
        return schedule_of(self._lookup.records[0])

    def seeds(self) -> tuple[tuple[Origin, Schedule], ...]:
        """Returns the schedules to try before any search."""
        claimed = self.claims.records if self.claims is not None else ()
        known: list[tuple[Origin, TuningRecord]] = []
        match self._lookup:
            case ExactHit(records=records):
                known = [("exact", record) for record in records[:1]]
            case TransferHit(records=records) if not self._is_settled:
                known = [("transfer", record) for record in records]
            case _:
                pass
        known += [("own-zone" if self._is_own(r) else "transfer", r) for r in claimed]
        return tuple((origin, schedule_of(record)) for origin, record in known if record.template)

    def failed(self) -> tuple[Schedule, ...]:
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
        known = isinstance(lookup, ExactHit) and bool(records)
        best_ms = records[0].median_ms if known else None
        return TaskOutcome(
            key=self._task.key,
            target=self._task.target,
            name=self._task.uses[0].name,
            source="exact" if known else "transfer" if records else "default",
            records=records[:KEPT_IN_OUTCOME],
            trials=0,
            before_ms=best_ms,
            best_ms=best_ms,
            seconds=0.0,
            stopped="exact" if known else self._skipped or "not-started",
        )

    @property
    def _is_foreign(self) -> bool:
        if not isinstance(self._lookup, ExactHit) or not self._lookup.records:
            return False
        best = self._lookup.records[0]
        return best.device.name != self._device.name or best.toolchain != self._toolchain

    def _is_own(self, record: TuningRecord) -> bool:
        return record.key == self._task.key


def schedule_of(record: TuningRecord) -> Schedule:
    return Schedule(record.template, record.decisions)
