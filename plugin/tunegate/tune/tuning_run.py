"""One tuning run: our own loop, in which nothing waits for what it need not wait for.

One child searches, a pool of children builds and times, and this process, which never imports
TVM, only decides: so it can stop on the second, whatever the children are doing.
"""

import math
import selectors
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.outcomes import Stopped, TaskOutcome
from tunegate.errors import EnvironmentUnfitError
from tunegate.ports import Publish
from tunegate.system.machine.cores import default_threads, usable_cores
from tunegate.system.nvidia.device_errors import is_device_lost
from tunegate.tune.batches import Batch, BudgetMeter, OpenBatches
from tunegate.tune.budget import is_reached, model_ms, trials_kept
from tunegate.tune.candidate_requests import CandidateMeasurements
from tunegate.tune.headroom import end_to_end_ms
from tunegate.tune.improvement import TaskState
from tunegate.tune.next_task import SearchPolicy, batch_for, choose
from tunegate.tune.parallel_measurement import Parallelism
from tunegate.tune.protocol import Candidate, Measure, Measured, OpenModels, Propose, Proposed
from tunegate.tune.searchers import Searchers, SearchProgram
from tunegate.tune.task_history import TaskHistory, heaviest_first
from tunegate.tune.workers import WORKERS_LOG, Executor
from tunegate_cache.format.records import TuningRecord

_TICK_SECONDS = 0.5
_UNMEASURED_SHARE = 0.02
_WORTH_JOINING_SECONDS = 60.0
_BUSY_EVERY_SECONDS = 1.0
"""The longest time that NVML averages over."""


class TuningRun:
    """Drives the children through one shard. Iterate `outcomes`, and always `close`."""

    def __init__(
        self,
        request: OpenModels,
        histories: Sequence[TaskHistory],
        *,
        spending: BudgetMeter,
        publish: Publish,
        executor: Executor,
        seed: int,
        searcher: SearchProgram,
    ) -> None:
        """Begins with nothing measured. Candidates run on inputs of `seed`."""
        self._request, self._publish, self._spending = request, publish, spending
        self._executor = executor
        self._directory = Path(request.directory)
        self._histories = [history for history in histories if not history.before.is_served]
        self._served = [history for history in histories if history.before.is_served]
        self._confirms_at_once = False
        only_measured = (h.before for h in self._histories if h.before.is_measured_only)
        known = sum(len(before.seeds()) for before in only_measured)
        self._trials_kept = trials_kept(known, spending.budget.trials or 0)
        self._batches = OpenBatches([history.workload for history in self._histories])
        self._watch = BrokenMachineWatch(self._directory / WORKERS_LOG)
        self._pool = executor.pool()
        workloads = [history.workload for history in self._histories]
        workers = len(self._pool.children)
        self._search = Searchers(request, workloads, workers, self._directory, searcher)
        self._throughput = Throughput(workers, usable_cores())
        self._busy_read_at = spending.clock.monotonic()
        self._policy = SearchPolicy(
            batch=batch_for(workers, len(workloads)),
            min_gain_percent_per_minute=spending.budget.min_gain_percent_per_minute,
        )
        self._parallelism = Parallelism(self._pool.slots)
        self._measuring = CandidateMeasurements(
            self._batches, self._directory, self._parallelism, seed
        )

    def outcomes(self) -> Iterator[TaskOutcome]:
        """Yields a task's outcome so far after each of its batches. The last one is final."""
        yield from (history.before.outcome() for history in self._served)
        stopped: Stopped = yield from self._search_until_done()
        yield from self._give_up_waiting()
        yield from self._measure_defaults(self._without_default(of_all=stopped == "converged"))
        yield from self._confirm(stopped)

    def reelections(self) -> Iterator[TaskOutcome]:
        """Yields the outcomes of measuring the best schedule of each task, known from an older
        toolchain, beside the default schedule, as far as trials are left. Both are confirmed
        at once, as there is nothing to choose from; tasks without a time for both, or disturbed
        from outside, wait for the next run."""
        self._confirms_at_once = True
        self._use_confirming_pool()
        yield from self._measure_defaults(self._histories)
        self._search.close()
        yield from (
            history.outcome(history.reason_stopped("finished")) for history in self._histories
        )

    def rechecks(self) -> Iterator[TaskOutcome]:
        """Yields the outcomes of measuring what the cache knows of each task beside the default
        schedule, without a search. The best is confirmed."""
        yield from self._measure_defaults(self._without_default(of_all=True), seeded=True)
        yield from self._confirm("finished")

    @property
    def notes(self) -> tuple[str, ...]:
        is_gpu = self._request.target.kind == "cuda"
        return (*self._parallelism.notes(), *(self._throughput.notes() if is_gpu else ()))

    def close(self) -> None:
        """Frees the machine now, and keeps what is measured but not published yet: not half of a
        pair, which would be an answer without the other."""
        self._search.close()
        self._pool.close()
        unpublished = self._batches.take_unpublished()
        if unpublished and not self._confirms_at_once:
            self._publish(unpublished)

    def _search_until_done(self) -> Generator[TaskOutcome, None, Stopped]:
        while not self._spending.is_out(reserve := self._reserve()):
            if self._is_fast_enough():
                return "target-latency"
            while self._pool.waiting < self._throughput.look_ahead():
                if not self._ask_for_candidates(reserve):
                    break
            if self._search.are_idle and not self._pool.pending:
                used = self._used_trials() + self._trials_kept
                return "budget" if self._spending.trials_left(used) == 0 else "converged"
            self._pool.dispatch()
            self._wait_in_search()
            self._take_proposal()
            yield from self._take_results()
            self._let_search_keep_up()
        return "budget"

    def _reserve(self) -> float:
        trials = sum(history.trials for history in self._histories)
        return self._spending.confirmation_seconds(len(self._histories), trials=trials)

    def _wait_in_search(self) -> None:
        clock, has_idle = self._spending.clock, self._pool.has_idle
        began = clock.monotonic()
        self._wait([*self._search.children, *self._pool.children])
        now = clock.monotonic()
        self._throughput.note_wait(now - began, has_idle_worker=has_idle)
        if now >= self._busy_read_at + _BUSY_EVERY_SECONDS:
            self._busy_read_at = now
            self._throughput.note_busy(self._executor.busy_percent())

    def _let_search_keep_up(self) -> None:
        """Starts more search children if the workers take more candidates than these find, by
        measured rates, unless the run ends before one has opened the models."""
        seconds_left = self._spending.seconds_left
        if seconds_left is None or seconds_left > _WORTH_JOINING_SECONDS:
            self._search.grow(self._throughput.searchers(len(self._search.children)))

    def _is_fast_enough(self) -> bool:
        """Returns whether every model meets its target. It is False before the tasks that matter
        are measured: an expected time is no reason to stop."""
        if not self._spending.budget.target_ms:
            return False
        states = [history.state() for history in self._histories]
        expected_ms = sum(state.model_ms for state in states if state.best_ms is None)
        if expected_ms > _UNMEASURED_SHARE * end_to_end_ms(states):
            return False
        timed = [(history.task, history.now_ms) for history in self._histories]
        timed += [(history.task, history.now_ms) for history in self._served]
        return is_reached(model_ms(timed), self._spending.budget.target_ms)

    def _give_up_waiting(self) -> Iterator[TaskOutcome]:
        """Drops what was searched ahead, to save the time for the last steps."""
        for request in self._pool.drop_waiting():
            batch = self._measuring.give_up(request, int(self._spending.clock.time()))
            if batch is not None:
                yield self._finish_batch(batch)

    def _measure_defaults(
        self, histories: Sequence[TaskHistory], *, seeded: bool = False
    ) -> Iterator[TaskOutcome]:
        waiting = heaviest_first(histories)
        while not self._spending.is_out():
            history = next((x for x in waiting if self._search.is_idle(x.workload)), None)
            if history is not None and self._pool.waiting < self._throughput.look_ahead():
                waiting.remove(history)
                self._measure_known(history, seeded=seeded)
                continue
            if self._search.are_idle and not self._pool.pending:
                return
            self._pool.dispatch()
            self._wait([*self._search.children, *self._pool.children])
            self._take_proposal()
            yield from self._take_results()

    def _measure_known(self, history: TaskHistory, *, seeded: bool) -> None:
        """Measures the default schedule of a task beside known ones, as far as trials are left."""
        known = history.before.seeds() if seeded or history.before.is_measured_only else ()
        seeds = known[: self._spending.trials_left(self._used_trials())] if known else ()
        if known and {schedule for _, schedule in seeds} <= {history.before.incumbent}:
            return  # The default schedule alone would replace the task's answer.
        history.is_started = True
        self._search.propose(Propose(workload=history.workload, count=0, seeds=seeds))

    def _without_default(self, *, of_all: bool) -> list[TaskHistory]:
        """Returns the tasks whose defaults are measured for the next run: those too small to
        search, and with `of_all` those not begun."""
        return [h for h in self._histories if h.needs_default or (of_all and not h.is_started)]

    def _ask_for_candidates(self, reserve: float) -> bool:
        """Asks for a batch. Returns whether one is worth it, and its child is free."""
        states = [self._searchable(history) for history in self._histories]
        used = self._used_trials() + self._trials_kept
        remaining = self._spending.remaining(used, reserve)
        choice = choose(states, remaining, self._policy)
        if choice is None:
            return False
        history = self._histories[choice.index]
        room = history.room(self._in_flight(history.workload))
        is_new = not self._search.knows(history.workload)
        results = self._batches.to_learn(history.workload)
        self._search.propose(
            Propose(
                workload=history.workload,
                count=choice.candidates if room is None else min(choice.candidates, room),
                seeds=history.before.seeds() if is_new else (),
                failed=history.before.failed_schedules() if is_new else (),
                known=history.measured_schedules() if is_new else (),
                results=() if is_new else results,
            )
        )
        history.is_started = True
        return True

    def _searchable(self, history: TaskHistory) -> TaskState:
        """Returns the state of a task for the choice of the next one."""
        in_flight = self._in_flight(history.workload)
        return msgspec.structs.replace(
            history.state(),
            exhausted=history.exhausted or history.room(in_flight) == 0,
            in_flight=in_flight,
            is_searching=not self._search.is_idle(history.workload),
        )

    def _take_proposal(self) -> None:
        for proposed in self._search.receive():
            history = next(x for x in self._histories if x.workload == proposed.workload)
            history.exhausted = history.exhausted or proposed.exhausted
            history.note_proposal(proposed.seconds, proposed.misfits)
            self._throughput.note_proposal(proposed.seconds, len(proposed.candidates))
            if proposed.candidates:
                self._start_batch(history, proposed)

    def _start_batch(self, history: TaskHistory, proposed: Proposed) -> None:
        self._measuring.target_json = self._search.target_json
        at_once, candidates = self._confirms_at_once, proposed.candidates
        self._pool.add(self._measuring.start(history, candidates, is_confirmation=at_once))

    def _take_results(self) -> Iterator[TaskOutcome]:
        for request, measured in self._collect():
            self._watch.see(measured)
            again, batch = self._measuring.take(request, measured, int(self._spending.clock.time()))
            self._pool.add(again)
            if batch is not None:
                yield self._finish_batch(batch)

    def _finish_batch(self, batch: Batch) -> TaskOutcome:
        history = batch.history
        if not (self._confirms_at_once and history.is_disturbed):
            self._publish(batch.records)
        workers = len(self._pool.children)
        history.note_batch(batch.trials, batch.seconds / workers, batch.default_seconds / workers)
        return history.outcome("finished")

    def _collect(self) -> Iterator[tuple[Measure, Measured]]:
        for request, measured in self._pool.collect():
            if measured.unfit:
                raise EnvironmentUnfitError(measured.unfit)
            if measured.status == "runtime":
                # Otherwise a lost device would be recorded as the candidate's fault.
                self._executor.require_devices(measured.detail)
            self._throughput.note_result(measured)
            yield request, measured

    def _confirm(self, stopped: Stopped) -> Iterator[TaskOutcome]:
        """Measures the best few again, in turn, alone on the machine and with all its threads. Only
        this makes a winner (no winner's curse)."""
        self._search.close()
        if not self._use_confirming_pool():
            self._pool.keep_one_each()
        by_share = heaviest_first(self._histories)
        records: dict[tuple[str, int], TuningRecord] = {}
        for again in (TaskHistory.finalists, TaskHistory.ties):
            requests = self._measuring.confirm_in_turn([(x, again(x)) for x in by_share])
            for history, candidate, measured in self._measured_in_turn(requests):
                now = int(self._spending.clock.time())
                record = history.confirm(candidate, measured, now)
                if not measured.from_outside:
                    records[candidate.workload, candidate.number] = record
        if records:
            self._publish(list(records.values()))
        yield from (history.outcome(history.reason_stopped(stopped)) for history in self._histories)

    def _use_confirming_pool(self) -> bool:
        """Replaces the workers by one with all threads of a winner. Returns False where those of
        the pool have them."""
        threads = self._request.target.threads or default_threads()
        confirming = self._executor.confirming_pool(threads)
        if confirming is not None:
            self._pool.close()
            self._pool = confirming
        return confirming is not None

    def _measured_in_turn(
        self, requests: list[Measure]
    ) -> Iterator[tuple[TaskHistory, Candidate, Measured]]:
        """Measures one request after the other, as far as the budget allows."""
        by_workload = {history.workload: history for history in self._histories}
        self._pool.add(requests)
        while self._pool.pending and not self._spending.is_out():
            self._pool.dispatch()
            self._wait(self._pool.children)
            for request, measured in self._collect():
                yield by_workload[request.candidate.workload], request.candidate, measured

    def _wait(self, children: Sequence[object]) -> None:
        with selectors.DefaultSelector() as selector:
            for child in children:
                selector.register(child, selectors.EVENT_READ)  # type: ignore[arg-type]
            seconds = self._spending.seconds_left
            tick = _TICK_SECONDS if seconds is None else min(_TICK_SECONDS, max(0.0, seconds))
            selector.select(tick)

    def _used_trials(self) -> int:
        return sum(x.trials + self._in_flight(x.workload) for x in self._histories)

    def _in_flight(self, workload: str) -> int:
        """Returns the number of candidates that already count as trials of the budget: those
        requested of the search, and those that are out."""
        return self._search.requested_count(workload) + self._batches.in_flight(workload)


# Workers that die before anything has run point to the machine, not to the candidates.

_DEATHS_OF_A_BROKEN_MACHINE = 4


class BrokenMachineWatch:
    """Sees every result of a run. `log` is what the workers wrote."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._deaths = self._measured = 0

    def see(self, measured: Measured) -> None:
        """Raises EnvironmentUnfitError once so many workers have died and nothing has run."""
        self._measured += measured.status == "ok"
        self._deaths += measured.has_killed_worker
        if not self._measured and self._deaths >= _DEATHS_OF_A_BROKEN_MACHINE:
            last = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            is_device = is_device_lost(measured.detail)
            problem = "the device ends each candidate" if is_device else "workers do not start"
            reason = measured.detail if is_device else " ".join(last)
            message = (
                f"{problem} here ({reason[:300]}). Run tunegate doctor; their log is {self._log}."
            )
            raise EnvironmentUnfitError(message)


# The throughput of a tuning run: the cost of a candidate, which processes were busy, and which the
# others waited for.
#
# Candidates pass two queues: search children find them, workers build and time them. The run is as
# fast as the slower one, and the search keeps up if its children find as many candidates as the
# workers take.

_ENOUGH = 8
"""Costs are known from so many candidates on: the first of each task pays for its space."""
_MOST_SHARE = 0.5
"""The most cores that search, as a share: candidates must be built as well."""
_LOOK_AHEAD = 4
"""The least look-ahead; with many workers, one for each group of as many. On a CPU two candidates
take longer to measure than a batch takes to find."""


class Throughput:
    """Measures one run of so many workers on so many cores."""

    def __init__(self, workers: int, cores: int) -> None:
        self._workers, self._cores = workers, cores
        self._found = self._measured = self._proposals = 0
        self._search_seconds = self._build_seconds = self._device_seconds = 0.0
        self._waited_for_device = 0.0
        self._waits = {"search": 0.0, "workers": 0.0}
        self._busy_percents: list[float] = []

    def note_proposal(self, seconds: float, candidates: int) -> None:
        self._search_seconds += seconds
        self._found += candidates
        self._proposals += 1

    def note_result(self, measured: Measured) -> None:
        self._measured += 1
        self._build_seconds += measured.build_seconds
        self._device_seconds += max(0.0, measured.run_seconds - measured.waited_seconds)
        self._waited_for_device += measured.waited_seconds

    def note_wait(self, seconds: float, *, has_idle_worker: bool) -> None:
        """Books a wait: for candidates if a worker had none, else for the workers."""
        self._waits["search" if has_idle_worker else "workers"] += seconds

    def note_busy(self, percent: float | None) -> None:
        """Books how busy the GPUs were in the last moment, None if unknown."""
        if percent is not None:
            self._busy_percents.append(percent)

    def searchers(self, now: int) -> int:
        """The children that must search for the workers to have enough, of which there are so many
        `now`: as many candidates as the workers take in a second, times the seconds that one takes
        to be found."""
        of_worker = self._worker_seconds()
        if not of_worker:
            return now
        searchers = math.ceil(self._workers * self._search_seconds / self._found / of_worker)
        return max(now, min(searchers, int(_MOST_SHARE * self._cores)))

    def look_ahead(self) -> int:
        """Returns the number of waiting candidates below which more are searched for: as many as
        the workers take while a batch is found, two for each worker at most. Looking further ahead
        would search without the results of those that wait."""
        least = max(_LOOK_AHEAD, self._workers // _LOOK_AHEAD)
        of_worker = self._worker_seconds()
        if not of_worker:
            return least
        of_batch = self._search_seconds / self._proposals
        return max(least, math.ceil(self._workers * min(2.0, of_batch / of_worker)))

    def _worker_seconds(self) -> float:
        """Returns the seconds that a candidate keeps a worker, 0 before that is known."""
        if min(self._found, self._measured) < _ENOUGH:
            return 0.0
        return (self._build_seconds + self._device_seconds) / self._measured

    def notes(self) -> tuple[str, ...]:
        """Returns a line for the report, none if nothing was measured."""
        seconds = sum(self._waits.values())
        if not self._measured or seconds <= 0:
            return ()
        return ("; ".join(self._speed_words(seconds)),)

    def _speed_words(self, seconds: float) -> Iterator[str]:
        busy = (self._build_seconds + self._search_seconds) / seconds
        yield f"{self._measured / seconds:.1f} candidates a second in {seconds:.0f} s of tuning"
        yield (
            f"{min(busy, self._cores):.1f} of {self._cores} cores{self._gpu()} were busy (a "
            "candidate took "
            f"{self._search_seconds / max(1, self._found):.2f} s to find and "
            f"{self._build_seconds / self._measured:.2f} s to build), and candidates ran for "
            f"{self._device_seconds:.0f} s"
        )
        by_whom = ((self._waits["search"], "the search"), (self._waits["workers"], "builds"))
        waited = [f"{whom} {part / seconds:.0%}" for part, whom in by_whom]
        yield (
            f"waited for: {', '.join(waited)} of the time; workers {self._waited_for_device:.0f} s "
            "for the device"
        )

    def _gpu(self) -> str:
        if not self._busy_percents:
            return ""
        mean = sum(self._busy_percents) / len(self._busy_percents)
        return f" and {mean:.0f}% of the GPU's time"
