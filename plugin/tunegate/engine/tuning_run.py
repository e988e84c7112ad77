"""One tuning run: our own loop, in which nothing waits for what it need not wait for.

One child searches, a crew of children builds and times, and this process, which never imports
TVM, only decides: so it can stop on the second, whatever the children are doing.
"""

from __future__ import annotations

import selectors
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.outcomes import Stopped, TaskOutcome
from tunegate.artifacts.plans import Budget
from tunegate.edges.cores import default_threads
from tunegate.engine.batches import Batch, OpenBatches
from tunegate.engine.measuring import Measuring
from tunegate.engine.parallelism import Parallelism
from tunegate.engine.protocol import (
    Candidate,
    Measure,
    Measured,
    OpenModels,
    Propose,
    Proposed,
)
from tunegate.engine.searchers import Searchers
from tunegate.engine.spending import Spending
from tunegate.engine.task_history import TaskLedger
from tunegate.engine.workers.executor import Executor
from tunegate.engine.workers.spawning import WORKERS_LOG
from tunegate.errors import EnvironmentUnfitError
from tunegate.ports import Clock, Publish
from tunegate.tuning.estimate import end_to_end_ms
from tunegate.tuning.next_task import TaskState, choose, policy_for
from tunegate.tuning.objective import is_reached, model_ms
from tunegate_cache.format.records import TuningRecord

_TICK_SECONDS = 0.5
_LOOK_AHEAD = 4
"""Fewer candidates than this waiting, or than one for as many workers: time to search for more. A batch
is found in less time than two of them take to measure; to look further ahead would be to search without
their results."""
_UNMEASURED_SHARE = 0.02
_DEATHS_OF_A_BROKEN_MACHINE = 4


class TuningRun:
    """Drives the children through one shard. Iterate `outcomes`, and always `close`."""

    def __init__(
        self,
        request: OpenModels,
        ledgers: Sequence[TaskLedger],
        budget: Budget,
        clock: Clock,
        publish: Publish,
        executor: Executor,
        seed: int,
        *,
        searcher: str,
    ) -> None:
        """Candidates are run on inputs of `seed`."""
        self._request, self._budget, self._clock, self._publish = request, budget, clock, publish
        self._spending = Spending(budget, clock)
        self._executor = executor
        self._directory = Path(request.directory)
        self._ledgers = [ledger for ledger in ledgers if not ledger.before.is_served]
        self._served = [ledger for ledger in ledgers if ledger.before.is_served]
        self._batches = OpenBatches([ledger.workload for ledger in self._ledgers])
        self._deaths = 0
        self._measured = 0
        self._crew = executor.crew()
        workloads = [ledger.workload for ledger in self._ledgers]
        workers = len(self._crew.children)
        self._search = Searchers(request, workloads, workers, self._directory, searcher)
        self._look_ahead = max(_LOOK_AHEAD, workers // _LOOK_AHEAD)
        self._policy = msgspec.structs.replace(
            policy_for(workers, len(workloads)),
            min_gain_percent_per_minute=budget.min_gain_percent_per_minute,
        )
        self._parallelism = Parallelism(self._crew.slots)
        self._measuring = Measuring(self._batches, self._directory, self._parallelism, seed)

    def outcomes(self) -> Iterator[TaskOutcome]:
        """An outcome-so-far of a task after each of its batches; the last one is final."""
        yield from (ledger.before.outcome() for ledger in self._served)
        stopped: Stopped = yield from self._search_until_done()
        yield from self._give_up_waiting()
        yield from self._measure_defaults()
        yield from self._confirm(stopped)

    def rechecks(self) -> Iterator[TaskOutcome]:
        """Measures what the cache knows of each task beside the default schedule, searches
        nothing, and confirms the best."""
        yield from self._measure_defaults(with_seeds=True)
        yield from self._confirm("finished")

    @property
    def notes(self) -> tuple[str, ...]:
        return self._parallelism.notes()

    def close(self) -> None:
        """Free the machine now, and keep what is measured but was not published yet."""
        self._search.close()
        self._crew.close()
        unpublished = self._batches.take_unpublished()
        if unpublished:
            self._publish(unpublished)

    def _search_until_done(self) -> Generator[TaskOutcome, None, Stopped]:
        reserve = self._spending.confirmation_seconds(len(self._ledgers))
        while not self._spending.is_out(reserve):
            if self._is_fast_enough():
                return "target-latency"
            if self._crew.waiting < self._look_ahead:
                self._ask_for_candidates(reserve)
            if self._search.are_idle and not self._crew.pending:
                is_spent = self._spending.trials_left(self._used_trials()) == 0
                return "budget" if is_spent else "converged"
            self._crew.dispatch()
            self._wait([*self._search.children, *self._crew.children])
            self._take_proposal()
            yield from self._take_results()
        return "budget"

    def _is_fast_enough(self) -> bool:
        """Not before what matters has been measured: an expected time is no reason to stop."""
        if not self._budget.target_ms:
            return False
        states = [ledger.state() for ledger in self._ledgers]
        expected_ms = sum(state.model_ms for state in states if state.best_ms is None)
        if expected_ms > _UNMEASURED_SHARE * end_to_end_ms(states):
            return False
        timed = [(ledger.task, ledger.now_ms) for ledger in self._ledgers]
        timed += [(ledger.task, ledger.now_ms) for ledger in self._served]
        return is_reached(model_ms(timed), self._budget.target_ms)

    def _give_up_waiting(self) -> Iterator[TaskOutcome]:
        """What was searched ahead must not eat the time that is kept for the last steps."""
        for request in self._crew.drop_waiting():
            batch = self._measuring.give_up(request, int(self._clock.time()))
            if batch is not None:
                yield self._finish_batch(batch)

    def _measure_defaults(self, *, with_seeds: bool = False) -> Iterator[TaskOutcome]:
        """Of the tasks that are too small to search, so that the next run finds them in the cache."""
        waiting = [ledger for ledger in self._ledgers if ledger.needs_default]
        while not self._spending.is_out():
            ledger = next((x for x in waiting if self._search.is_idle(x.workload)), None)
            if ledger is not None:
                waiting.remove(ledger)
                ledger.is_started = True
                seeds = (
                    ledger.before.seeds() if with_seeds or ledger.before.is_measured_only else ()
                )
                self._search.propose(Propose(workload=ledger.workload, count=0, seeds=seeds))
            if self._search.are_idle and not self._crew.pending:
                return
            self._crew.dispatch()
            self._wait([*self._search.children, *self._crew.children])
            self._take_proposal()
            yield from self._take_results()

    def _ask_for_candidates(self, reserve: float) -> None:
        states = [self._searchable(ledger) for ledger in self._ledgers]
        choice = choose(states, self._spending.left(self._used_trials(), reserve), self._policy)
        if choice is None:
            return
        ledger = self._ledgers[choice.index]
        is_new = not self._search.knows(ledger.workload)
        results = self._batches.to_learn(ledger.workload)
        self._search.propose(
            Propose(
                workload=ledger.workload,
                count=choice.candidates,
                seeds=ledger.before.seeds() if is_new else (),
                failed=ledger.before.failed() if is_new else (),
                known=ledger.known() if is_new else (),
                results=() if is_new else results,
            )
        )
        ledger.is_started = True
        ledger.in_flight += choice.candidates

    def _searchable(self, ledger: TaskLedger) -> TaskState:
        """With nothing new to be had while the search is busy with another task of the same child."""
        state = ledger.state()
        if self._search.is_idle(ledger.workload):
            return state
        return msgspec.structs.replace(state, exhausted=True)

    def _take_proposal(self) -> None:
        for proposed in self._search.receive():
            ledger = next(x for x in self._ledgers if x.workload == proposed.workload)
            ledger.in_flight = self._batches.unbooked(proposed.workload)
            ledger.exhausted = ledger.exhausted or proposed.exhausted
            ledger.note_proposal(proposed.seconds, proposed.misfits)
            if proposed.candidates:
                self._start_batch(ledger, proposed)

    def _start_batch(self, ledger: TaskLedger, proposed: Proposed) -> None:
        self._measuring.target_json = self._search.target_json
        self._crew.add(self._measuring.start(ledger, proposed.candidates))

    def _take_results(self) -> Iterator[TaskOutcome]:
        for request, measured in self._collected():
            self._watch_for_a_broken_machine(measured)
            again, batch = self._measuring.take(request, measured, int(self._clock.time()))
            self._crew.add(again)
            if batch is not None:
                yield self._finish_batch(batch)

    def _finish_batch(self, batch: Batch) -> TaskOutcome:
        ledger = batch.ledger
        self._publish(batch.records)
        workers = len(self._crew.children)
        ledger.note_batch(batch.trials, batch.seconds / workers, batch.default_seconds / workers)
        return ledger.outcome("finished")

    def _collected(self) -> Iterator[tuple[Measure, Measured]]:
        for request, measured in self._crew.collect():
            if measured.unfit:
                raise EnvironmentUnfitError(measured.unfit)
            yield request, measured

    def _watch_for_a_broken_machine(self, measured: Measured) -> None:
        """Workers that die before anything has run say something about this machine."""
        self._measured += measured.status == "ok"
        self._deaths += measured.has_killed_worker
        if not self._measured and self._deaths >= _DEATHS_OF_A_BROKEN_MACHINE:
            log = self._directory / WORKERS_LOG
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            message = f"the build workers do not start here ({' '.join(last)[:300]}). Run tunegate doctor."
            raise EnvironmentUnfitError(message)

    def _confirm(self, stopped: Stopped) -> Iterator[TaskOutcome]:
        """Measure the best few again, in turn, alone on the machine and with all its threads: a winner is
        believed only then (no winner's curse)."""
        self._search.close()
        threads = self._request.target.threads or default_threads()
        careful = self._executor.careful_crew(threads)
        if careful is None:
            self._crew.keep_one_each()
        else:
            self._crew.close()
            self._crew = careful
        by_share = sorted(self._ledgers, key=lambda x: -x.state().model_ms)
        records: dict[tuple[str, int], TuningRecord] = {}
        for again in (TaskLedger.contenders, TaskLedger.rivals):
            requests = self._measuring.careful_in_turn([(x, again(x)) for x in by_share])
            for ledger, candidate, measured in self._measured_in_turn(requests):
                now = int(self._clock.time())
                record = ledger.confirm(candidate, measured, now)
                records[candidate.workload, candidate.number] = record
        if records:
            self._publish(list(records.values()))
        yield from (ledger.outcome(ledger.stopped(stopped)) for ledger in self._ledgers)

    def _measured_in_turn(
        self, requests: list[Measure]
    ) -> Iterator[tuple[TaskLedger, Candidate, Measured]]:
        """As far as the budget goes."""
        by_workload = {ledger.workload: ledger for ledger in self._ledgers}
        self._crew.add(requests)
        while self._crew.pending and not self._spending.is_out():
            self._crew.dispatch()
            self._wait(self._crew.children)
            for request, measured in self._collected():
                yield by_workload[request.candidate.workload], request.candidate, measured

    def _wait(self, children: Sequence[object]) -> None:
        with selectors.DefaultSelector() as selector:
            for child in children:
                selector.register(child, selectors.EVENT_READ)  # type: ignore[arg-type]
            left = self._spending.seconds_left
            selector.select(_TICK_SECONDS if left is None else min(_TICK_SECONDS, max(0.0, left)))

    def _used_trials(self) -> int:
        return sum(ledger.trials + ledger.in_flight for ledger in self._ledgers)
