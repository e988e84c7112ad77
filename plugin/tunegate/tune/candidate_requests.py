"""Turns candidates into requests, and results into finished batches: how often, and beside which
others, each is timed."""

import random
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from tunegate.tune.batches import Batch, OpenBatches
from tunegate.tune.parallel_measurement import Parallelism, corrected_batch, to_check
from tunegate.tune.protocol import Candidate, Measure, Measured
from tunegate.tune.task_history import TaskHistory
from tunegate_cache.format.records import CONFIRMED_REPEATS

_REPEATS = 3
_REPEAT_MS, _CONFIRMED_REPEAT_MS = 10, 30
_LOSER_FACTOR = 1.5
"""Above this factor of the best time, one repeat is enough. On a shared machine a repeat of 10 ms
may be off by 1.3, and no possible winner may be lost to that."""


class ResultEffect(NamedTuple):
    """The effect of a result: the requests that follow, and the batch that it finished."""

    again: list[Measure]
    finished: Batch | None


class CandidateMeasurements:
    """The measurements of one run, on inputs of `seed`. `target_json` is set once the models are
    open."""

    def __init__(
        self, batches: OpenBatches, directory: Path, parallelism: Parallelism, seed: int
    ) -> None:
        self._batches, self._directory, self._parallelism = batches, directory, parallelism
        self._seed = seed
        self._rng = random.Random(1)  # noqa: S311 -- a sample, not a secret
        self.target_json = ""

    def start(
        self,
        history: TaskHistory,
        candidates: Sequence[Candidate],
        *,
        is_confirmation: bool = False,
    ) -> list[Measure]:
        """Returns the requests of a new batch, with as many at once as the device has shown to bear
        for this task; a confirmation is alone."""
        at_once = 1 if is_confirmation else self._parallelism.at_once(history.workload)
        self._batches.start(history, candidates, at_once=at_once)
        if is_confirmation:
            return [self.confirm(history, candidate) for candidate in candidates]
        return [self._request(history, candidate, at_once=at_once) for candidate in candidates]

    def confirm_in_turn(
        self, candidates: Sequence[tuple[TaskHistory, Sequence[Candidate]]]
    ) -> list[Measure]:
        """Returns the requests in turn: the first of each task, then the second of each. If the
        budget ends, most tasks have an answer."""
        turns = zip_longest(
            *([(history, c) for c in candidates] for history, candidates in candidates)
        )
        return [self.confirm(*one) for turn in turns for one in turn if one is not None]

    def confirm(self, history: TaskHistory, candidate: Candidate) -> Measure:
        """Returns the request for a possible winner: all repeats, nothing beside it."""
        return self._request(history, candidate, is_confirmation=True, alone=True)

    def take(self, request: Measure, result: Measured, now: int) -> ResultEffect:
        batch = self._batches.come_back(request.candidate, result, now)
        return self._after(batch, now) if batch.is_back else ResultEffect([], None)

    def give_up(self, request: Measure, now: int) -> Batch | None:
        """Returns the batch if it waited for this request only. What it knows counts without a
        further check."""
        batch = self._batches.give_up(request.candidate)
        return self._finish_batch(batch, now) if batch.is_back else None

    def _after(self, batch: Batch, now: int) -> ResultEffect:
        if batch.held_back and batch.alone is None:
            numbers = to_check(batch.held_back, self._rng)
            if numbers:
                history = batch.history
                again = self._batches.check(batch, numbers)
                return ResultEffect([self._request(history, c, alone=True) for c in again], None)
        return ResultEffect([], self._finish_batch(batch, now))

    def _finish_batch(self, batch: Batch, now: int) -> Batch:
        workload = batch.history.workload
        if batch.at_once == 1:
            self._parallelism.note_alone(workload, batch.results)
        elif batch.held_back:
            checked_batch = corrected_batch(batch.held_back, batch.alone or {})
            self._batches.settle(batch, checked_batch.results, now)
            self._parallelism.note_beside(workload, checked_batch)
        self._batches.close(batch)
        return batch

    def _request(
        self,
        history: TaskHistory,
        candidate: Candidate,
        *,
        is_confirmation: bool = False,
        at_once: int = 1,
        alone: bool = False,
    ) -> Measure:
        best = history.best_ms
        return Measure(
            candidate=candidate,
            target_json=self.target_json,
            reference=str(self._directory / f"{candidate.workload}.npy"),
            writes_reference=candidate.origin == "default",
            loser_ms=float("inf") if best is None else _LOSER_FACTOR * best,
            repeats=CONFIRMED_REPEATS if is_confirmation else _REPEATS,
            seed=self._seed,
            repeat_ms=_CONFIRMED_REPEAT_MS if is_confirmation else _REPEAT_MS,
            at_once=at_once,
            alone=alone,
            # The default schedule is the reference of all others. A candidate measured again was in
            # time before.
            patience_seconds=None
            if alone or candidate.origin == "default"
            else history.patience_seconds,
        )
