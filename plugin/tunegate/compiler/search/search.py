"""The search of one task: seeds first, then samples that a filter picks.

MetaSchedule supplies the space, the replay and the postprocessors. What to try next is decided on
decisions alone, so a batch costs only as many replays as it has candidates.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import tvm
from tvm.s_tir import meta_schedule as ms

from tunegate.artifacts.tasks import ScheduleSource as Origin
from tunegate.compiler.schedules import schedule_choice
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload
from tunegate.tune.candidate_filter import Pick, Reason, picks
from tunegate.tune.prior import Prior
from tunegate.tune.protocol import DEFAULT, Candidate, Measured, Proposed, Schedule, TensorArgument
from tunegate.tune.samples import SampleFeatures, SampleSpace, ScheduleSample
from tunegate.tune.surrogate import GOOD, SamplePools, Surrogate

_ATTEMPTS = 24
"""Replays per candidate of a batch: on a GPU one sample in fifty may fit its limits, until the
surrogate has learned which. A failing replay takes a few milliseconds."""
_EMPTY_BATCHES = 3
"""After this many empty batches in a row the search is exhausted."""


class TaskSearch:
    """A search that proposes candidates of one workload and learns from their results.

    The first proposal holds the default schedule and the seeds, filled up with samples that the
    prior picks, or random ones without it. From then on samples come from the best schedules too,
    and a surrogate picks among them once it has shown that it can.
    """

    def __init__(
        self,
        workload: Workload,
        target: Any,
        *,
        seed: int,
        filters: bool = True,
        prior: Prior | None = None,
        first_number: int = 1,
    ) -> None:
        """`prior` scores samples before this task has results. Without `filters` every sample
        counts alike, for comparison."""
        self._workload, self._target, self._filters = workload, target, filters
        self._rng = random.Random(seed)  # noqa: S311 -- a search, not a secret
        self.space = DesignSpace(workload, target)
        self._arguments = ms.arg_info.ArgInfo.from_prim_func(workload.module["main"])
        sampling = self.space.sampling()
        seldom = [d for d, t in self.space.templates.items() if t.variant.is_seldom_best]
        samples = SampleSpace(sampling, self._rng, seldom=seldom)
        sketches = self.space.sketches()
        self._features = SampleFeatures(sampling, sketches)
        is_known = any(sketch.nest for sketch in sketches.values())
        # A prior of a GPU was fitted to the analysis, too.
        self._surrogate = Surrogate((prior or self._features.analysis) if is_known else None)
        self._pools = SamplePools(samples, self._features, str(target.kind.name))
        self._open: dict[int, Schedule] = {}
        self._times: dict[Schedule, float] = {}
        self._seen: set[Schedule] = set()
        self._seeds: deque[tuple[Origin, Any]] = deque()
        self._number = first_number - 1
        self._needs_default = True
        self._empty = 0
        self._is_small = False

    def propose(self, count: int, seeds: Sequence[tuple[Origin, Schedule]]) -> Proposed:
        """Returns at most `count` candidates that are new to this task: the worthwhile seeds, the
        likeliest first, then what the search finds; the other seeds wait for the next batch. A
        `count` of 0 takes all seeds and searches nothing. The default schedule does not count."""
        candidates: list[Candidate] = []
        if self._needs_default:
            self._needs_default = False
            candidates.append(self._default())
        misfits = self._queue(seeds, all_of_them=not count)
        from_seeds = self._take_seeds(self._seats(count) if count else None)
        missing = max(0, count - len(from_seeds))
        from_search = list(self._search(missing)) if missing else []
        instead = self._take_seeds(missing - len(from_search))
        candidates += [*from_seeds, *from_search, *instead]
        self._empty = self._empty + 1 if missing and not (from_search or instead) else 0
        is_exhausted = self._empty == _EMPTY_BATCHES or (self._empty > 0 and self._is_small)
        return Proposed(self._workload.digest, tuple(candidates), is_exhausted, misfits)

    def _queue(self, seeds: Sequence[tuple[Origin, Schedule]], *, all_of_them: bool) -> int:
        """Queues the seeds worth trying behind those that already wait. Returns how many did not
        fit."""
        own = [(origin, schedule) for origin, schedule in seeds if origin != "transfer"]
        replays = [(origin, self.space.replay(schedule)) for origin, schedule in own]
        self._seeds.extend((origin, each) for origin, each in replays if each is not None)
        foreign = [schedule for origin, schedule in seeds if origin == "transfer"]
        most = len(foreign) if all_of_them else schedule_choice.MAX_TRANSFERRED
        fitting, misfits = schedule_choice.transferred_schedules(
            foreign, self.space, self._expect(), most
        )
        self._seeds.extend(("transfer", each) for each in fitting)
        return misfits + sum(each is None for _, each in replays)

    def _seats(self, count: int) -> int:
        """Returns the number of seeds in a batch of `count`. If a prior picks samples, transferred
        schedules get half of the batch: neither is always better, and the first of each find most
        (docs/benchmarks)."""
        if self._expect() is None:
            return count
        exact = sum(origin != "transfer" for origin, _ in self._seeds)
        return min(count, max(exact, (count + 1) // 2))

    def _expect(self) -> schedule_choice.Expect | None:
        return schedule_choice.expectation(
            self._features, self._surrogate.prior if self._filters else None
        )

    def _take_seeds(self, most: int | None) -> list[Candidate]:
        candidates: list[Candidate] = []
        while self._seeds and (most is None or len(candidates) < most):
            candidate = self._new_candidate(*self._seeds.popleft())
            if candidate is not None:
                candidates.append(candidate)
        return candidates

    def avoid(self, schedules: Sequence[Schedule]) -> None:
        """Excludes these schedules from future proposals."""
        self._seen.update(schedules)

    def remember(self, results: Sequence[tuple[Schedule, float]]) -> None:
        """Resumes from the results of an earlier search of this task."""
        for schedule, milliseconds in results:
            if schedule == DEFAULT:
                self._needs_default = False
                continue
            self._seen.add(schedule)
            self._enter(schedule, milliseconds)

    def learn(self, results: Sequence[Measured]) -> None:
        """Takes in results: samples are bred from them, and the surrogate is fitted to them."""
        for result in results:
            schedule = self._open.pop(result.number, DEFAULT)
            if schedule == DEFAULT:
                continue
            is_ok = result.status == "ok"
            self._enter(schedule, result.median_ms if is_ok else None)

    def _enter(self, schedule: Schedule, milliseconds: float | None) -> None:
        if milliseconds is not None:
            self._times[schedule] = milliseconds
        self._surrogate.add(self._features.of(_sample(schedule)), milliseconds)

    def _default(self) -> Candidate:
        module = with_default_schedule(self._workload.module, self._target)
        return self._candidate("default", DEFAULT, module)

    def _search(self, count: int) -> Iterator[Candidate]:
        count_so_far = 0
        samples, order = self._pick_samples(count)
        for attempt, pick in enumerate(order):
            if count_so_far == count or attempt == _ATTEMPTS * count:
                return
            schedule = Schedule(*samples[pick.sample])
            replay = self.space.replay(schedule)
            if replay is None:
                self._seen.add(schedule)
                self._surrogate.add(self._features.of(samples[pick.sample]), None)
                continue
            candidate = self._new_candidate("search", replay, pick.reason)
            if candidate is not None:
                count_so_far += 1
                yield candidate

    def _pick_samples(self, count: int) -> tuple[list[ScheduleSample], Iterator[Pick]]:
        """Returns the samples, and the order in which to try them."""
        good = [_sample(schedule) for schedule in self._best_schedules()]
        past = {_sample(schedule) for schedule in self._seen}
        samples, self._is_small = self._pools.draw_pool(good, past)
        score = self._surrogate.score() if self._filters and samples else None
        scores = None
        if score is not None:
            bred_scores = self._pools.breed(score, samples, good, past)
            samples, scores = list(bred_scores), list(bred_scores.values())
        kinds = [self._features.kind(sample) for sample in samples]
        return samples, picks(scores, kinds, count, self._rng)

    def _best_schedules(self) -> list[Schedule]:
        return sorted(self._times, key=lambda schedule: self._times[schedule])[:GOOD]

    def _new_candidate(
        self, origin: Origin, schedule: Any, reason: Reason = "random"
    ) -> Candidate | None:
        description = self.space.describe(schedule.trace)
        if description is None or description in self._seen:
            return None
        return self._candidate(origin, description, schedule.mod, reason)

    def _candidate(
        self, origin: Origin, schedule: Schedule, module: Any, reason: Reason = "random"
    ) -> Candidate:
        self._seen.add(schedule)
        self._number += 1
        self._open[self._number] = schedule
        return Candidate(
            number=self._number,
            workload=self._workload.digest,
            origin=origin,
            reason=reason,
            expected=self._expected_score(schedule),
            schedule=schedule,
            module=str(tvm.ir.save_json(module)),
            arguments=tuple(
                TensorArgument(tuple(int(n) for n in a.shape), str(a.dtype))
                for a in self._arguments
            ),
        )

    def _expected_score(self, schedule: Schedule) -> float | None:
        prior = self._surrogate.prior
        if prior is None or schedule == DEFAULT:
            return None
        (ratio,) = prior.ratios([self._features.of(_sample(schedule))])
        return float(ratio)


def _sample(schedule: Schedule) -> ScheduleSample:
    return ScheduleSample(schedule.template, schedule.decisions)
