"""The open batches of a tuning run: which candidates are out, and which have come back."""

from collections.abc import Sequence

from tunegate.artifacts.plans import Budget
from tunegate.ports import Clock
from tunegate.tune.next_task import RemainingBudget
from tunegate.tune.protocol import Candidate, Measured
from tunegate.tune.task_history import TaskHistory
from tunegate_cache.format.records import TuningRecord


class Batch:
    """The candidates of one proposal; `out` are those not back yet. Times measured beside other
    candidates are `held_back` until they are checked. `seconds` are worker seconds, and
    `default_seconds` those of the default schedule."""

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
        """The number of candidates that are trials without a result. Candidates measured again
        alone are in `held_back` instead."""
        return len(self.held_back) + (len(self.out) if self.alone is None else 0)


class OpenBatches:
    """All open batches, by task, and the results that their searches have not learned yet."""

    def __init__(self, workloads: Sequence[str]) -> None:
        self._open: dict[str, list[Batch]] = {workload: [] for workload in workloads}
        self._unlearned: dict[str, list[Measured]] = {workload: [] for workload in workloads}

    def start(
        self, history: TaskHistory, candidates: Sequence[Candidate], *, at_once: int = 1
    ) -> None:
        self._open[history.workload].append(Batch(history, candidates, at_once))

    def in_flight(self, workload: str) -> int:
        """Returns the number of this task's candidates that are trials without a result."""
        return sum(batch.in_flight for batch in self._open[workload])

    def come_back(self, candidate: Candidate, result: Measured, now: int) -> Batch:
        """Returns the batch of the candidate. A result that needs no check is booked in the task's
        history."""
        batch = self._without(candidate)
        seconds = result.build_seconds + result.run_seconds
        if candidate.origin == "default":
            batch.default_seconds += seconds
        else:
            batch.seconds += seconds
        if batch.alone is not None:
            batch.alone[result.number] = result
        elif batch.at_once == 1:
            self._book(batch, result, now)
        else:
            batch.held_back.append(result)
        return batch

    def check(self, batch: Batch, numbers: Sequence[int]) -> list[Candidate]:
        """Returns the candidates that go out again, to be measured alone."""
        batch.alone = {}
        batch.out = set(numbers)
        return [batch.candidates[number] for number in numbers]

    def settle(self, batch: Batch, results: Sequence[Measured], now: int) -> None:
        """Books the results that count of the candidates held back."""
        batch.held_back = []
        for result in results:
            self._book(batch, result, now)

    def close(self, batch: Batch) -> None:
        self._open[batch.history.workload].remove(batch)

    def give_up(self, candidate: Candidate) -> Batch:
        batch = self._without(candidate)
        if batch.alone is None:
            batch.trials -= candidate.origin != "default"
        return batch

    def to_learn(self, workload: str) -> tuple[Measured, ...]:
        """Returns the results that this task's search has not been given, each once."""
        results, self._unlearned[workload] = self._unlearned[workload], []
        return tuple(results)

    def take_unpublished(self) -> list[TuningRecord]:
        """Returns the records of batches that will not finish."""
        records = [r for batches in self._open.values() for b in batches for r in b.records]
        self._open = {}
        return records

    def _book(self, batch: Batch, result: Measured, now: int) -> None:
        candidate = batch.candidates[result.number]
        batch.results.append(result)
        record = batch.history.enter(candidate, result, now)
        if not result.from_outside:
            # A record of a failure keeps the candidate from every later run.
            batch.records.append(record)
        self._unlearned[candidate.workload].append(result)

    def _without(self, candidate: Candidate) -> Batch:
        batches = self._open[candidate.workload]
        batch = next(b for b in batches if candidate.number in b.out)
        batch.out.discard(candidate.number)
        return batch


# The remaining budget of one tuning run.

_CONFIRM_SHARE, _CONFIRM_SECONDS_PER_TASK = 0.15, 1.0
_ENDING_SHARE, _MOST_ENDING_SECONDS = 0.05, 1.0
"""Workers take time to end: up to 0.6 s of 18 s beside other runs, and the cap includes it. Where
ten processes waited for each core, it took 1.8 s of 42 s."""


class BudgetMeter:
    """Counts the seconds from its creation on, or since `began`: a device that is awaited and
    prepared costs time, too. `crowding` is the number of processes that wait for each core."""

    def __init__(
        self, budget: Budget, clock: Clock, *, began: float | None = None, crowding: float = 1.0
    ) -> None:
        self.budget, self.clock = budget, clock
        self._started = clock.monotonic() if began is None else began
        self._ending_seconds = _MOST_ENDING_SECONDS * max(1.0, crowding)

    @property
    def seconds_left(self) -> float | None:
        """Returns the seconds before the end begins, negative once they are over, None without a
        limit."""
        cap = self.budget.seconds
        if cap is None:
            return None
        return cap - min(_ENDING_SHARE * cap, self._ending_seconds) - self._seconds_spent()

    def is_out(self, reserve: float = 0.0) -> bool:
        """Returns whether at most `reserve` seconds are left."""
        seconds_left = self.seconds_left
        return seconds_left is not None and seconds_left <= reserve

    def trials_left(self, trials_used: int) -> int | None:
        """Returns the trials left, None without a limit."""
        return None if self.budget.trials is None else max(0, self.budget.trials - trials_used)

    def remaining(self, trials_used: int, reserve: float) -> RemainingBudget:
        """Returns the budget of the next batch, after `trials_used` trials."""
        seconds = self.seconds_left
        return RemainingBudget(
            trials=self.trials_left(trials_used),
            seconds=None if seconds is None else max(0.0, seconds - reserve),
            spent_seconds=self._seconds_spent(),
        )

    def confirmation_seconds(self, tasks: int, *, trials: int) -> float:
        """Returns the seconds reserved for measuring the winners of `tasks` tasks again, 0 before
        any trial: a short budget is better spent on the first trial."""
        seconds = self.budget.seconds
        if seconds is None or not trials:
            return 0.0
        return min(_CONFIRM_SHARE * seconds, 2.0 + _CONFIRM_SECONDS_PER_TASK * tasks)

    def _seconds_spent(self) -> float:
        return self.clock.monotonic() - self._started
