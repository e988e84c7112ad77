"""The batches of a tuning run that are still out: which candidates are missing, what has come back."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.edges.metaschedule.ledger import TaskLedger
from tunegate.edges.metaschedule.messages import Candidate, Measured
from tunegate_cache.records import TuningRecord


class Batch:
    """The candidates of one proposal; `out` are those that have not come back. `seconds` are of the
    workers, the default schedule's aside: it comes once, and may be very slow."""

    def __init__(self, ledger: TaskLedger, candidates: Sequence[Candidate]) -> None:
        self.ledger = ledger
        self.out = {candidate.number for candidate in candidates}
        self.seconds = 0.0
        self.trials = sum(candidate.origin != "default" for candidate in candidates)
        self.records: list[TuningRecord] = []

    @property
    def is_back(self) -> bool:
        return not self.out


class OpenBatches:
    """All batches that are out, by task, and what their tasks' searches have not learned yet."""

    def __init__(self, workloads: Sequence[str]) -> None:
        self._open: dict[str, list[Batch]] = {workload: [] for workload in workloads}
        self._unlearned: dict[str, list[Measured]] = {workload: [] for workload in workloads}

    def start(self, ledger: TaskLedger, candidates: Sequence[Candidate]) -> None:
        batch = Batch(ledger, candidates)
        self._open[ledger.workload].append(batch)
        ledger.in_flight += len(batch.out)

    def out_of(self, workload: str) -> int:
        return sum(len(batch.out) for batch in self._open[workload])

    def come_back(self, candidate: Candidate, measured: Measured, now: int) -> Batch:
        """Book a result in the task's ledger. The batch of the candidate; it is closed when it was
        the last one."""
        batch = self._without(candidate)
        if candidate.origin != "default":
            batch.seconds += measured.build_seconds + measured.run_seconds
        batch.records.append(batch.ledger.enter(candidate, measured, now))
        self._unlearned[candidate.workload].append(measured)
        return batch

    def give_up(self, candidate: Candidate) -> Batch:
        batch = self._without(candidate)
        batch.trials -= candidate.origin != "default"
        return batch

    def to_learn(self, workload: str) -> tuple[Measured, ...]:
        """Results that the search of this task has not been given; each is given once."""
        results, self._unlearned[workload] = self._unlearned[workload], []
        return tuple(results)

    def take_unpublished(self) -> list[TuningRecord]:
        """Records of batches that will not be finished."""
        records = [r for batches in self._open.values() for b in batches for r in b.records]
        self._open = {}
        return records

    def _without(self, candidate: Candidate) -> Batch:
        batches = self._open[candidate.workload]
        batch = next(b for b in batches if candidate.number in b.out)
        batch.out.discard(candidate.number)
        batch.ledger.in_flight -= 1
        if batch.is_back:
            batches.remove(batch)
        return batch
