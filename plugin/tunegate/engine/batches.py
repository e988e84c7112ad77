"""The batches of a tuning run that are still out: which candidates are
missing, what has come back."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.engine.protocol import Candidate, Measured
from tunegate.engine.task_history import TaskHistory
from tunegate_cache.format.records import TuningRecord


class Batch:
    """The candidates of one proposal; `out` are those that have not come back. What was timed
    beside each other is no result before it is checked: `held_back` until then. `seconds` are of
    the workers, and `default_seconds` those of the default schedule."""

    def __init__(self, history: TaskHistory, candidates: Sequence[Candidate], at_once: int) -> None:
        self.history = history
        self.candidates = {candidate.number: candidate for candidate in candidates}
        self.out = set(self.candidates)
        self.at_once = at_once
        self.results: list[Measured] = []
        self.held_back: list[Measured] = []
        self.alone: dict[int, Measured] | None = None
        self.seconds = self.default_seconds = 0.0
        self.trials = sum(candidate.origin != "default" for candidate in candidates)
        self.records: list[TuningRecord] = []

    @property
    def is_back(self) -> bool:
        return not self.out

    @property
    def in_flight(self) -> int:
        """The number of candidates that are a trial already and no result yet; what is
        measured again alone is held back."""
        return len(self.held_back) + (len(self.out) if self.alone is None else 0)


class OpenBatches:
    """All batches that are out, by task, and what their tasks' searches have not learned yet."""

    def __init__(self, workloads: Sequence[str]) -> None:
        self._open: dict[str, list[Batch]] = {workload: [] for workload in workloads}
        self._unlearned: dict[str, list[Measured]] = {workload: [] for workload in workloads}

    def start(
        self, history: TaskHistory, candidates: Sequence[Candidate], *, at_once: int = 1
    ) -> None:
        self._open[history.workload].append(Batch(history, candidates, at_once))

    def in_flight(self, workload: str) -> int:
        """The number of this task's candidates that are trials already and no results yet."""
        return sum(batch.in_flight for batch in self._open[workload])

    def come_back(self, candidate: Candidate, measured: Measured, now: int) -> Batch:
        """The batch of the candidate; a result that needs no check is
        booked in the task's history."""
        batch = self._without(candidate)
        seconds = measured.build_seconds + measured.run_seconds
        if candidate.origin == "default":
            batch.default_seconds += seconds
        else:
            batch.seconds += seconds
        if batch.alone is not None:
            batch.alone[measured.number] = measured
        elif batch.at_once == 1:
            self._book(batch, measured, now)
        else:
            batch.held_back.append(measured)
        return batch

    def check(self, batch: Batch, numbers: Sequence[int]) -> list[Candidate]:
        """The candidates that go out again, to be measured alone."""
        batch.alone = {}
        batch.out = set(numbers)
        return [batch.candidates[number] for number in numbers]

    def settle(self, batch: Batch, results: Sequence[Measured], now: int) -> None:
        """Takes in what counts of the candidates that were held back."""
        batch.held_back = []
        for measured in results:
            self._book(batch, measured, now)

    def close(self, batch: Batch) -> None:
        self._open[batch.history.workload].remove(batch)

    def give_up(self, candidate: Candidate) -> Batch:
        batch = self._without(candidate)
        if batch.alone is None:
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

    def _book(self, batch: Batch, measured: Measured, now: int) -> None:
        candidate = batch.candidates[measured.number]
        batch.results.append(measured)
        batch.records.append(batch.history.enter(candidate, measured, now))
        self._unlearned[candidate.workload].append(measured)

    def _without(self, candidate: Candidate) -> Batch:
        batches = self._open[candidate.workload]
        batch = next(b for b in batches if candidate.number in b.out)
        batch.out.discard(candidate.number)
        return batch
