"""The schedule of each kernel of a build: the best of its records that replays, the prior's
pick, or the default."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from tunegate.artifacts.tasks import ScheduleSource
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.schedules.algorithm_variants import DIRECT, asked_algorithm
from tunegate.compiler.schedules.grouped_convolutions import grouped_convolution
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload
from tunegate.compiler.targets import ResolvedTarget
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.prior import Prior, prior_of
from tunegate.tune.protocol import Schedule
from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import SampleSpace, ScheduleSample
from tunegate.tune.surrogate import SamplePools
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import TuningRecord, WorkloadKey

PICKED: tuple[ScheduleSource, ...] = ("prior", "transfer")
"""Sources of tasks of which nobody has measured anything, so that the prior picks."""


class ScheduleChoice(NamedTuple):
    """`main` is None for the default schedule; `record` is what it came from, `picked` are the
    decisions of one that came from no record."""

    function: ModelFunction
    main: Any | None
    record: TuningRecord | None
    picked: Schedule | None = None

    @property
    def schedule(self) -> Schedule | None:
        """The decisions of `main`; None for the default schedule."""
        if self.record is None or not self.record.template:
            return self.picked
        return Schedule(self.record.template, self.record.decisions)


def chosen_schedule(
    function: ModelFunction,
    records: Mapping[str, tuple[TuningRecord, ...]],
    target: ResolvedTarget,
    source: ScheduleSource = "exact",
) -> ScheduleChoice:
    """The best of the function's records. Where those are not of it (`source`), the prior chooses
    among them and what it would try first itself; it has the word before the nearest neighbour."""
    found = records.get(function.workload.digest, ())
    picked = _picked(function, found, target.target) if source in PICKED else None
    return picked or ScheduleChoice(function, *best_that_replays(function, found, target.target))


def without_schedules(
    choices: Iterable[ScheduleChoice], names: Collection[str]
) -> list[ScheduleChoice]:
    """The choices, the kernels of these names with their default schedule."""
    return [
        ScheduleChoice(choice.function, None, None) if choice.function.name in names else choice
        for choice in choices
    ]


def as_before(
    choices: Iterable[ScheduleChoice], how: HowBuilt, target: str
) -> list[ScheduleChoice]:
    """The choices, with their schedules where an earlier build on the target of this key had the
    same, and else with the default one."""
    kept = set(how.kept)
    return [
        choice
        if choice.schedule is not None and _mark(choice, choice.schedule, target) in kept
        else ScheduleChoice(choice.function, None, None)
        for choice in choices
    ]


def _mark(choice: ScheduleChoice, schedule: Schedule, target: str) -> int:
    return mark_of(record_id(WorkloadKey(choice.function.workload.digest, target), schedule))


def _picked(
    function: ModelFunction, records: Sequence[TuningRecord], target: Any
) -> ScheduleChoice | None:
    space = DesignSpace(function.workload, target)
    refits = {
        refit: record
        for record in records
        if record.status == "ok" and (refit := space.refit(_schedule_of(record))) is not None
    }
    failed = [_schedule_of(record) for record in records if record.status != "ok"]
    prior = prior_of(str(target.kind.name))
    pick = prior_pick(function.workload, target, space, prior, offered=refits, failed=failed)
    if pick is None:
        return None
    main = _marked(pick.replayed)
    neighbour = refits.get(pick.schedule)
    if neighbour is None:
        return ScheduleChoice(function, main, None, pick.schedule)
    used = msgspec.structs.replace(neighbour, decisions=pick.schedule.decisions)
    return ScheduleChoice(function, main, used)


def best_that_replays(
    function: ModelFunction, records: tuple[TuningRecord, ...], target: Any
) -> tuple[Any | None, TuningRecord | None]:
    usable = [record for record in records if record.status == "ok"]
    if not usable:
        return None, None
    space = DesignSpace(function.workload, target)
    for record, wanted in _in_order(usable, space, function.workload.digest, target):
        if not record.template:
            return None, record  # the default schedule was measured, and nothing was faster
        schedule = space.replay(wanted)
        if schedule is not None:
            used = msgspec.structs.replace(record, decisions=wanted.decisions)
            return _marked(schedule), used
    return None, None


def _marked(schedule: Any) -> Any:
    main = schedule.mod["main"].without_attr("global_symbol")
    return main.with_attr(IS_SCHEDULED, True)


def _schedule_of(record: TuningRecord) -> Schedule:
    return Schedule(record.template, record.decisions)


def _in_order(
    records: Sequence[TuningRecord], space: DesignSpace, workload: str, target: Any
) -> list[tuple[TuningRecord, Schedule]]:
    """The best first: by their times, or, of neighbours, whose times say nothing here, by what is
    expected of them. A neighbour's schedule is moved to the extents here: TVM's own repair may make
    a tile that takes minutes to compile, and nobody has tried."""
    schedules = [_schedule_of(record) for record in records]
    if records[0].key.workload == workload:
        return list(zip(records, schedules, strict=True))
    refits = [space.refit(schedule) for schedule in schedules]
    fitting = [(r, refit) for r, refit in zip(records, refits, strict=True) if refit is not None]
    features = SampleFeatures(space.sampling(), space.sketches())
    expect = expectation(features, prior_of(str(target.kind.name)))
    return [fitting[place] for place in likeliest([refit for _, refit in fitting], expect)]


def record_id(key: WorkloadKey, schedule: TuningRecord | Schedule) -> str:
    """Identity of the candidate, however often it was measured."""
    text = msgspec.json.encode([key.workload, key.target, schedule.template, schedule.decisions])
    return hashlib.sha256(text).hexdigest()


def scheduled(module: Any, choices: Iterable[ScheduleChoice]) -> Any:
    """Returns the module with these schedules."""
    scheduled = module.clone()
    for choice in choices:
        if choice.main is not None:
            name = scheduled.get_global_var(choice.function.name)
            scheduled.update_func(name, choice.main)
    return scheduled


def source_of(function: ModelFunction, request: BuildModel) -> ScheduleSource:
    """Says where what is known of the kernel is from."""
    return cast("ScheduleSource", request.sources.get(function.workload.digest, "exact"))


# The schedule that the prior expects most of, where nothing can be measured. One-Shot Tuner (CC
# 2022) builds with the first pick of a model that was trained on other tasks. Here the pick of a
# workload hangs on nothing but the workload, the target, the prior and what neighbours offer, so
# that base and head have the same one.

_MOST_REPLAYS = 24
"""The number of samples of which one must replay, else there is no pick."""


class PriorPick(NamedTuple):
    """`replayed` is TVM's schedule, `schedule` its decisions."""

    replayed: Any
    schedule: Schedule


def prior_pick(
    workload: Workload,
    target: Any,
    space: DesignSpace,
    prior: Prior | None,
    *,
    offered: Collection[Schedule] = (),
    failed: Collection[Schedule] = (),
) -> PriorPick | None:
    """Returns the likeliest of the `offered` and of what is sampled, without those that `failed`;
    None where the prior abstains: there is none for such targets, it knows no such loop nest, or it
    has seen no such operator, as grouped convolutions: their default schedule is faster than its
    pick."""
    kind = str(target.kind.name)
    if prior is None or not _is_known(workload, space):
        return None
    ranked = _ranked(space, prior, kind, _seed(workload), [_sample(each) for each in offered])
    without = {_sample(each) for each in failed}
    for number, sample in enumerate(each for each in ranked if each not in without):
        if number == _MOST_REPLAYS:
            return None
        replayed = space.replay(Schedule(*sample))
        described = None if replayed is None else space.describe(replayed.trace)
        if described is not None and _sample(described) not in without:
            return PriorPick(replayed, described)
    return None


def _is_known(workload: Workload, space: DesignSpace) -> bool:
    """Returns whether a prior may know the operator: one with steps of vectors is grouped, and so
    is one that was asked to have none."""
    sketches = space.sketches().values()
    main = workload.module["main"]
    is_grouped = any(each.lanes > 1 for each in sketches) or (
        asked_algorithm(main) == DIRECT and grouped_convolution(main) is not None
    )
    return any(each.nest for each in sketches) and not is_grouped


def _ranked(
    space: DesignSpace, prior: Prior, kind: str, seed: int, offered: Sequence[ScheduleSample]
) -> Iterator[ScheduleSample]:
    """Yields what the prior knows, the likeliest first."""
    sampling = space.sampling()
    features = SampleFeatures(sampling, space.sketches())
    seldom = [d for d, t in space.templates.items() if t.variant.is_seldom_best]
    rng = random.Random(seed)  # noqa: S311 -- a search, not a secret
    samples = SampleSpace(sampling, rng, seldom=seldom)
    pools = SamplePools(samples, features, drops_bloated=kind == "llvm")
    drawn, _ = pools.drawn(offered, ())
    fitting = [each for each in offered if not features.is_bloated(each)]
    scores = pools.bred(prior.ratios, [*fitting, *drawn], (), ())
    for sample in sorted(scores, key=lambda each: -scores[each]):
        if prior.knows([features.of(sample)])[0]:
            yield sample


def _seed(workload: Workload) -> int:
    return int(workload.digest[:16], 16)


def _sample(schedule: Schedule) -> ScheduleSample:
    return ScheduleSample(schedule.template, schedule.decisions)


# The neighbours' schedules that are worth compiling: the best by the expectation for this task.
# Neighbours offer dozens of schedules, each in two adaptations. What is measured in the first
# batch is all that many tasks ever get, so their order decides more than their number (figures in
# docs/benchmarks).

MAX_TRANSFERRED = 8
"""The number of neighbours' schedules that are tried. Each is replayed twice, which takes as
long as picking a batch of samples."""
Expect = Callable[[Sequence[Schedule]], Sequence[float]]
"""Expects a score of each schedule of this space, (n,) floats; larger is better."""


class Transferred(NamedTuple):
    """`fitting` are schedules of TVM, the likeliest first, each described once.
    `misfits` fitted in neither way."""

    fitting: list[Any]
    misfits: int


def transferred_schedules(
    found: Sequence[Schedule],
    space: DesignSpace,
    expect: Expect | None,
    most: int = MAX_TRANSFERRED,
) -> Transferred:
    """`found` has the nearest first; the likeliest `most` are adapted, by TVM's own repair and by
    nearest divisors, and the likeliest `most` of these given. Without `expect` the nearest are."""
    refits = [space.refit(schedule) for schedule in found]
    known = [n for n, refit in enumerate(refits) if refit is not None]
    order = likeliest([refit for refit in refits if refit is not None], expect)
    adapted: dict[Schedule, Any] = {}
    misfits = len(found) - len(known)
    for place in order[:most]:
        number = known[place]
        fitting = _described(space, [found[number], refits[number]])
        misfits += not fitting
        adapted |= fitting
    schedules = list(adapted)
    best = likeliest(schedules, expect)[:most]
    return Transferred([adapted[schedules[place]] for place in best], misfits)


def _described(space: DesignSpace, variants: Sequence[Schedule | None]) -> dict[Schedule, Any]:
    found = {}
    for variant in dict.fromkeys(variants):  # one that fits as it is has one adaptation
        replayed = None if variant is None else space.replay(variant)
        described = None if replayed is None else space.describe(replayed.trace)
        if described is not None:
            found[described] = replayed
    return found


def expectation(features: SampleFeatures, prior: Prior | None) -> Expect | None:
    if prior is None:
        return None

    def expect(schedules: Sequence[Schedule]) -> list[float]:
        rows = [features.of(ScheduleSample(each.template, each.decisions)) for each in schedules]
        return [float(ratio) for ratio in prior.ratios(rows)]

    return expect


def likeliest(schedules: Sequence[Schedule], expect: Expect | None) -> list[int]:
    """Their places, the best by what is expected first; of equals the one that comes first."""
    if expect is None or not schedules:
        return list(range(len(schedules)))
    scores = expect(schedules)
    return sorted(range(len(schedules)), key=lambda place: -scores[place])
