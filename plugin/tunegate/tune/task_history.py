"""The history of each task in a tuning run: its results, as records and as an outcome."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from tunegate.artifacts.outcomes import CandidateCost, Stopped, TaskOutcome
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import ScheduleSource as Origin
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.claims import MIN_SAMPLES_BESIDE
from tunegate.tune.expected_time import starting_state
from tunegate.tune.improvement import MeasuredBatch, TaskState
from tunegate.tune.next_task import sides_in_turn
from tunegate.tune.prior_results import KEPT_IN_OUTCOME, PriorResults, schedule_of
from tunegate.tune.protocol import DEFAULT, Candidate, Measured, Schedule
from tunegate_cache.format.records import (
    WINNERS_CURSE,
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
)

_NEAR = 1.5
"""Two quick measurements of one schedule differ by at most this factor on a shared machine."""


class TaskHistory:
    """The history of one task. Every scheduled candidate gives a record, failures included."""

    def __init__(
        self,
        planned_task: PlannedTask,
        *,
        device: DeviceFingerprint,
        toolchain: Toolchain,
        source: Provenance,
        most_trials: int | None = None,
    ) -> None:
        """`most_trials` are enough where they bear out what was expected."""
        self.planned = planned_task
        self._most_trials = most_trials
        self._predictions: list[Prediction] = []
        self.before = PriorResults(planned_task, device, toolchain)
        self._prior = starting_state(planned_task, "cuda" if device.kind == "cuda" else "llvm")
        self.task = planned_task.resolved.task
        self._device, self._toolchain, self._source = device, toolchain, source
        self.trials = 0
        self.seconds = 0.0
        self.search_seconds = 0.0
        # A task too small to search has its default schedule measured, and nothing else.
        self.exhausted = not planned_task.trials
        self.is_started = False
        self.is_disturbed = False
        """Something outside ended a measurement, such as a lack of memory."""
        self.default_ms: float | None = None
        self.best: TuningRecord | None = None
        self.best_origin: Origin = "default"
        self._history: list[MeasuredBatch] = []
        self._candidates: dict[Schedule, Candidate] = {}
        self._ok: dict[Schedule, tuple[TuningRecord, Origin]] = {}
        self._failures: Counter[str] = Counter()
        self._misfits = self._searched = 0
        self._detail = ""
        self._costs: list[CandidateCost] = []
        self._confirmed: set[Schedule] = set()
        self._incumbent = self.before.incumbent

    @property
    def now_ms(self) -> float:
        """The time of one call, measured or expected."""
        return self._prior.prior_ms if self.best_ms is None else self.best_ms

    @property
    def needs_default(self) -> bool:
        """True if to measure the default schedule: the task is too small to search, and one
        measurement makes it known for good. False for a task that only the budget left out."""
        is_small = not self.planned.trials and not self.planned.is_unpaid
        return is_small and not self.is_started

    @property
    def workload(self) -> str:
        return self.task.key.workload

    @property
    def best_ms(self) -> float | None:
        best_record_ms = None if self.best is None else self.best.median_ms
        times = [t for t in (self.default_ms, best_record_ms) if t is not None]
        return min(times) if times else None

    @property
    def patience_seconds(self) -> float | None:
        """Returns the seconds that building, or measuring, the next candidate may take."""
        return patience_seconds(self._costs)

    def measured_schedules(self) -> tuple[tuple[Schedule, float], ...]:
        """Returns the schedules that this run has measured, with their milliseconds."""
        return tuple((schedule, record.median_ms) for schedule, (record, _) in self._ok.items())

    def enter(self, candidate: Candidate, result: Measured, now: int) -> TuningRecord:
        """Books a result and returns the record to publish. The default schedule is a candidate
        with an empty template."""
        before = self.best_ms
        self.seconds += result.build_seconds + result.run_seconds
        self.is_disturbed = self.is_disturbed or result.from_outside
        if result.status != "ok":
            self._failures[result.status] += 1
            self._detail = self._detail or result.detail
        elif candidate.origin == "default":
            self.default_ms = result.median_ms
        if self._incumbent is not None and candidate.origin == "exact":
            # TVM replaces decisions that a record's template does not allow.
            self._incumbent = candidate.schedule
        self.trials += candidate.origin != "default"
        self._searched += candidate.origin == "search"
        record = self._record(candidate.schedule, result, now)
        if result.status == "ok":
            self._accept(candidate, record)
            if self.before.is_outdated and record.is_confirmed:
                self._confirmed.add(candidate.schedule)
            if candidate.expected is not None:
                self._predictions.append(Prediction(candidate.expected, result.median_ms))
        improves = self.best_ms is not None and (before is None or self.best_ms < before)
        self._costs.append(cost_of("quick", candidate, result, improves=improves))
        return record

    def note_proposal(self, seconds: float, misfits: int) -> None:
        """Notes the time that finding candidates took, and the number of seeds that did not
        apply."""
        self.search_seconds += seconds
        self._misfits += misfits

    def note_batch(self, trials: int, seconds: float, default_seconds: float = 0.0) -> None:
        """Adds a finished batch to the improvement history."""
        self._history.append(
            MeasuredBatch(
                trials=trials,
                seconds=seconds,
                best_ms=self.best_ms,
                default_seconds=default_seconds,
            )
        )
        self.exhausted = self.exhausted or self._is_claim_checked() or self._has_enough()
        finalists = {DEFAULT, *list(self._rank_candidates())[:MAX_FINALISTS]}
        self._candidates = {s: c for s, c in self._candidates.items() if s in finalists}

    def room(self, in_flight: int) -> int | None:
        """Returns the number of candidates that it may still get, None without a limit. After its
        last trial it is 0."""
        if self._most_trials is None or self.trials >= self._most_trials:
            return None
        return max(0, self._most_trials - self.trials - in_flight)

    def _has_enough(self) -> bool:
        limit = self._most_trials
        return limit is not None and is_enough(self.trials, limit, self._predictions)

    def _is_claim_checked(self) -> bool:
        claims = self.before.claims
        has_ended = claims is not None and claims.is_searched
        return has_ended and self._searched >= MIN_SAMPLES_BESIDE and self.best_origin == "own-zone"

    def state(self) -> TaskState:
        """Returns the task as the scheduler sees it, without candidates that are out."""
        return msgspec.structs.replace(
            self._prior,
            best_ms=self.best_ms,
            history=tuple(self._history),
            exhausted=self.exhausted,
        )

    def finalists(self) -> list[Candidate]:
        """Returns the best candidates so far, to be measured again before one is confirmed. They
        include the default schedule if it is not far behind, so nothing replaces it by luck."""
        times = self._rank_candidates()
        schedules = list(times)[: finalist_count(list(times.values()), self.trials)]
        is_near = self.default_ms is not None and self.default_ms < _NEAR * self.now_ms
        if is_near and DEFAULT not in schedules:
            schedules.append(DEFAULT)
        if self._incumbent is not None and self._incumbent not in schedules:
            schedules.append(self._incumbent)
        return [self._candidates[s] for s in schedules if s in self._candidates]

    def ties(self) -> list[Candidate]:
        """Returns the finalists that were measured again and are still tied."""
        times = {s: ms for s, ms in self._rank_candidates().items() if s in self._confirmed}
        schedules = list(times)[: tie_count(list(times.values()))]
        return [self._candidates[s] for s in schedules if s in self._candidates]

    def _rank_candidates(self) -> dict[Schedule, float]:
        """Returns the candidates with their milliseconds, best first."""
        times = {schedule: record.median_ms for schedule, (record, _) in self._ok.items()}
        return dict(sorted(times.items(), key=lambda one: one[1]))

    def reason_stopped(self, run: Stopped) -> Stopped:
        """Returns why this task stopped in a run that stopped for `run`."""
        if not self.is_started or not (self._ok or self._failures):
            return "budget" if self.before.is_outdated else "not-started"
        if not self._ok:
            return "failed"
        return "finished" if self.exhausted else run

    def confirm(self, candidate: Candidate, result: Measured, now: int) -> TuningRecord:
        """Books a confirmed measurement. It replaces the quick one, and adds to earlier
        confirmations."""
        schedule = candidate.schedule
        self._costs.append(cost_of("confirm", candidate, result, improves=False))
        if schedule in self._confirmed and schedule in self._ok:
            every = (*self._ok[schedule][0].run_nanoseconds, *result.nanoseconds)
            result = msgspec.structs.replace(result, nanoseconds=every)
        if result.status != "ok":
            self._ok.pop(schedule, None)
            self.best = None
            return self._record(schedule, result, now)
        origin = self._ok[schedule][1]
        record = self._record(schedule, result, now)
        self._ok[schedule] = (record, origin)
        self._confirmed.add(schedule)
        if candidate.origin == "default":
            self.default_ms = record.median_ms
        pairs = [self._ok[s] for s in self._confirmed if s in self._ok]
        self.best, self.best_origin = min(pairs, key=lambda pair: pair[0].median_ms)
        return record

    def outcome(self, stop_reason: Stopped) -> TaskOutcome:
        """Returns the outcome. A task without time for a measurement keeps the trusted zones'
        answer, and so does one whose claim ran without the record that it had to beat. A schedule
        of an older toolchain counts once it is confirmed, unless its pair was disturbed."""
        # Schedules of an older toolchain that were not measured again stay as the cache has them.
        is_asked = bool(self._history) and not self._confirmed.isdisjoint(self._ok)
        if self.before.is_outdated and (self.is_disturbed or not is_asked):
            reason: Stopped = "budget" if stop_reason == "finished" else stop_reason
            return msgspec.structs.replace(
                self.before.outcome(),
                trials=self.trials,
                seconds=self.seconds,
                stopped="failed" if self.is_disturbed else reason,
                failures=dict(self._failures),
                detail=self._detail,
                costs=tuple(self._costs),
            )
        # What trusted zones answered stays, too, where the run has nothing to hold against it.
        is_unbeaten = self._incumbent is not None and self._incumbent not in self._confirmed
        if is_unbeaten or (self.before.is_answered and not self._ok):
            return self.before.outcome()
        # Else the fastest that were confirmed; of a run that confirmed none, the fastest at all.
        pairs = sorted(self._ok.values(), key=lambda pair: pair[0].median_ms)
        confirmed_pairs = [pair for pair in pairs if schedule_of(pair[0]) in self._confirmed]
        best = [record for record, _ in (confirmed_pairs or pairs)[:KEPT_IN_OUTCOME]]
        return TaskOutcome(
            key=self.task.key,
            target=self.task.target,
            name=self.task.uses[0].name,
            source=self._ok[schedule_of(best[0])][1] if best else "default",
            records=tuple(best),
            trials=self.trials,
            before_ms=self.default_ms,
            best_ms=best[0].median_ms if best else self.default_ms,
            seconds=self.seconds,
            stopped=stop_reason,
            failures=dict(self._failures + Counter(misfit=self._misfits)),
            detail=self._detail,
            search_seconds=self.search_seconds,
            costs=tuple(self._costs),
            older=self.before.result([origin for _, origin in confirmed_pairs]),
        )

    def _accept(self, candidate: Candidate, record: TuningRecord) -> None:
        self._ok[candidate.schedule] = (record, candidate.origin)
        self._candidates[candidate.schedule] = candidate
        if self.best is None or record.median_ms < self.best.median_ms:
            self.best, self.best_origin = record, candidate.origin

    def _record(self, schedule: Schedule, result: Measured, now: int) -> TuningRecord:
        return TuningRecord(
            key=self.task.key,
            shape=self.task.shape,
            template=schedule.template,
            decisions=schedule.decisions,
            run_nanoseconds=result.nanoseconds,
            status=result.status,
            device=self._device,
            toolchain=self._toolchain,
            measured_at=now,
            source=self._source,
        )


def heaviest_first(histories: Sequence[TaskHistory]) -> list[TaskHistory]:
    """Returns the tasks, the largest share of a side's time first, the sides in turn."""
    by_share = sorted(histories, key=lambda history: -history.state().model_ms)
    return sides_in_turn(by_share, lambda history: history.task.is_of_base_alone)


# The cost of one measured candidate, and the time limits of the next ones.

_ENOUGH_SEEN = 4
_TIMES_THE_SLOWEST, _MIN_SECONDS = 3.0, 5.0


def cost_of(
    stage: Literal["quick", "confirm"], candidate: Candidate, result: Measured, *, improves: bool
) -> CandidateCost:
    return CandidateCost(
        stage=stage,
        origin=candidate.origin,
        pick=candidate.reason if candidate.origin == "search" else "given",
        status=result.status,
        build_seconds=result.build_seconds,
        run_seconds=result.run_seconds,
        milliseconds=result.median_ms if result.status == "ok" else None,
        improved=improves,
    )


def patience_seconds(costs: Sequence[CandidateCost]) -> float | None:
    """Returns the seconds that building, or measuring, may take, by the task's candidates so far,
    None before there are enough. A candidate that takes several times the longest of the others is
    hardly the best. (DOPpler adapts its limit to the load, IEEE TPDS 2023; Helion's autotuner to
    what was seen, as here.)"""
    durations = [
        max(cost.build_seconds, cost.run_seconds)
        for cost in costs
        if cost.status == "ok" and cost.origin != "default"
    ]
    if len(durations) < _ENOUGH_SEEN:
        return None
    return max(_MIN_SECONDS, _TIMES_THE_SLOWEST * max(durations))


# How many of a task's candidates are measured again before one is confirmed.
#
# DOPpler (IEEE TPDS 2023) measures the best hundredth again, alone. Here it is those that the error
# of a quick measurement may have put behind, as far as the task's trials are worth it. Candidates
# that this does not separate are measured once more, so that no slow moment of the machine decides.

MIN_FINALISTS, MAX_FINALISTS = 2, 8
TIE_RATIO = WINNERS_CURSE
"""Candidates within this factor of the best may be behind by bad luck only."""
_TRIALS_FOR_ONE = 32


def finalist_count(times_ms: Sequence[float], trials: int) -> int:
    """Returns the number of finalists among `times_ms`, best first."""
    worth = math.ceil(trials / _TRIALS_FOR_ONE)
    return min(len(times_ms), max(MIN_FINALISTS, min(MAX_FINALISTS, _close(times_ms), worth)))


def tie_count(times_ms: Sequence[float]) -> int:
    """Returns the number of finalists that are still tied, by their times, best first."""
    close = _close(times_ms)
    return close if close > 1 else 0


def _close(times_ms: Sequence[float]) -> int:
    return sum(each <= TIE_RATIO * times_ms[0] for each in times_ms)


# The early end of a search. One-Shot Tuner (CC 2022) measures one batch of what its model predicts
# best, and stops. Such candidates are alike, so ranks within a batch tell little: only a clear
# contradiction of the model is a reason to search on.

MIN_COMPARED = 4
"""Fewer candidates tell nothing about ranks."""
CONTRADICTED = -0.3
"""Below this rank correlation, predictions and measurements disagree."""


class Prediction(NamedTuple):
    """The predicted score of a candidate (larger is better), and the milliseconds that it took."""

    score: float
    milliseconds: float


def is_enough(trials: int, limit: int, predictions: Sequence[Prediction]) -> bool:
    """Returns whether a search of `limit` trials ends after `trials`."""
    return trials >= limit and not disagrees(predictions)


def disagrees(predictions: Sequence[Prediction]) -> bool:
    if len(predictions) < MIN_COMPARED:
        return False
    scores = [prediction.score for prediction in predictions]
    speeds = [-prediction.milliseconds for prediction in predictions]
    return rank_correlation(scores, speeds) < CONTRADICTED
