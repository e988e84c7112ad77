"""The search of one task: seeds first, then MetaSchedule's evolutionary search in batches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import tvm
from tvm.s_tir import meta_schedule as ms

from tunegate.artifacts.builds import Source as Origin
from tunegate.edges.metaschedule.messages import (
    Argument,
    Candidate,
    Measured,
    Proposed,
    Schedule,
)
from tunegate.edges.metaschedule.space import DEFAULT, DesignSpace
from tunegate.edges.metaschedule.workload import Workload

_BATCH = 16
_SMALL_POPULATION, _LARGE_POPULATION = 64, 256
_TRIALS_FOR_LARGE_POPULATION = 200


class TaskSearch:
    """Proposes candidates of one workload and learns from their results.

    The first proposal holds the default schedule and the seeds; a random sketch sample fills the
    batch. Later ones come from evolution on the cost model, which all tasks of a run share.
    """

    def __init__(
        self, workload: Workload, target: Any, cost_model: Any, *, threads: int, seed: int
    ) -> None:
        self._workload = workload
        self._target = target
        self._model = cost_model
        self._threads = threads
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 -- a search, not a secret
        self._context = ms.TuneContext(
            mod=workload.module,
            target=target,
            space_generator="post-order-apply",
            search_strategy="replay-trace",
            num_threads=threads,
            rand_state=seed,
        )
        self.space = DesignSpace(workload, self._context)
        self._arguments = ms.arg_info.ArgInfo.from_prim_func(workload.module["main"])
        self._database = ms.database.MemoryDatabase()
        self._committed = self._database.commit_workload(workload.module)
        self._evolution: Any | None = None
        self._spare: list[Any] = []
        self._open: dict[int, Any] = {}
        self._seen: set[Schedule] = set()
        self._number = 0

    def propose(self, count: int, more: int, seeds: Sequence[tuple[Origin, Schedule]]) -> Proposed:
        """At most `count` candidates that this task has not seen; seeds do not count."""
        candidates: list[Candidate] = []
        rejected = 0
        if self._number == 0:
            candidates.append(self._default())
        for origin, schedule in seeds:
            made = [self._seeded(origin, s) for s in self._variants(origin, schedule)]
            kept = [candidate for candidate in made if candidate is not None]
            rejected += not kept
            candidates.extend(kept)
        searched = self._search(count, more) if count else []
        candidates.extend(searched)
        exhausted = count > 0 and not searched
        return Proposed(self._workload.digest, tuple(candidates), exhausted, rejected)

    def avoid(self, schedules: Sequence[Schedule]) -> None:
        """Never propose these."""
        self._seen.update(schedules)

    def learn(self, results: Sequence[Measured]) -> None:
        """Take results in: into the database that seeds the evolution, and the cost model."""
        pairs = [(self._open.pop(r.number, None), r) for r in results]
        known = [(c, r) for c, r in pairs if c is not None]
        if not known:
            return
        candidates = [candidate for candidate, _ in known]
        outcomes = [_runner_result(result) for _, result in known]
        for candidate, result in known:
            if result.status == "ok":
                self._commit(candidate, result)
        self._model.update(self._context, candidates, outcomes)
        if self._evolution is not None:
            self._evolution.notify_runner_results(candidates, outcomes)

    def _default(self) -> Candidate:
        return self._candidate("default", DEFAULT, self._workload.module)

    def _variants(self, origin: Origin, schedule: Schedule) -> list[Schedule]:
        if origin != "transfer":
            return [schedule]
        refit = self.space.refit(schedule)
        return [schedule] if refit is None else [schedule, refit]

    def _seeded(self, origin: Origin, schedule: Schedule) -> Candidate | None:
        replayed = self.space.replay(schedule)
        return None if replayed is None else self._scheduled(origin, replayed)

    def _search(self, count: int, more: int) -> list[Candidate]:
        found: list[Candidate] = []
        if self._number <= 1 or more <= _BATCH:
            found = self._random(count)
        for _ in range(3):
            if len(found) >= count:
                break
            batch = self._next_generation(more)
            if not batch:
                break
            found.extend(self._fresh(batch, count - len(found)))
        return found

    def _random(self, count: int) -> list[Candidate]:
        made = (self._scheduled("search", s) for s in self.space.sample(count, self._chance))
        return [candidate for candidate in made if candidate is not None]

    def _fresh(self, batch: Sequence[Any], wanted: int) -> list[Candidate]:
        found: list[Candidate] = []
        for position, measure in enumerate(batch):
            if len(found) == wanted:
                self._spare = list(batch[position:])
                break
            candidate = self._scheduled("search", measure.sch)
            if candidate is not None:
                found.append(candidate)
        return found

    def _next_generation(self, more: int) -> list[Any]:
        if self._spare:
            batch, self._spare = self._spare, []
            return batch
        if self._evolution is None:
            self._evolution = self._start_evolution(more)
        return list(self._evolution.generate_measure_candidates() or ())

    def _start_evolution(self, more: int) -> Any:
        large = more >= _TRIALS_FOR_LARGE_POPULATION
        population = _LARGE_POPULATION if large else _SMALL_POPULATION
        context = ms.TuneContext(
            mod=self._workload.module,
            target=self._target,
            space_generator="post-order-apply",
            search_strategy=ms.search_strategy.EvolutionarySearch(
                population_size=population,
                init_measured_ratio=0.5,
                init_min_unmeasured=population // 4,
                genetic_num_iters=3,
            ),
            num_threads=self._threads,
            rand_state=self._seed,
        )
        context.pre_tuning(
            max_trials=2**30,
            num_trials_per_iter=_BATCH,
            design_spaces=self.space.schedules,
            database=self._database,
            cost_model=self._model,
        )
        return context

    def _scheduled(self, origin: Origin, schedule: Any) -> Candidate | None:
        described = self.space.describe(schedule.trace)
        if described is None or described in self._seen:
            return None
        candidate = self._candidate(origin, described, schedule.mod)
        self._open[candidate.number] = ms.MeasureCandidate(schedule, self._arguments)
        return candidate

    def _candidate(self, origin: Origin, schedule: Schedule, module: Any) -> Candidate:
        self._seen.add(schedule)
        self._number += 1
        return Candidate(
            number=self._number,
            workload=self._workload.digest,
            origin=origin,
            schedule=schedule,
            module=str(tvm.ir.save_json(module)),
            arguments=tuple(
                Argument(tuple(int(n) for n in a.shape), str(a.dtype)) for a in self._arguments
            ),
        )

    def _commit(self, candidate: Any, result: Measured) -> None:
        seconds = [n / 1e9 for n in result.nanoseconds]
        record = ms.database.TuningRecord(
            candidate.sch.trace, self._committed, seconds, self._target, candidate.args_info
        )
        self._database.commit_tuning_record(record)


def _runner_result(result: Measured) -> Any:
    if result.status == "ok":
        return ms.runner.RunnerResult([n / 1e9 for n in result.nanoseconds], None)
    return ms.runner.RunnerResult(None, result.detail or result.status)
