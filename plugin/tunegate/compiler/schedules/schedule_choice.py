"""Chooses the schedule of each kernel of a build: the best record that replays, the prior's pick,
or the default."""

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from tunegate.artifacts.tasks import ScheduleSource
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.schedules.algorithm_variants import DIRECT, asked_algorithm
from tunegate.compiler.schedules.convolutions import grouped_convolution
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload
from tunegate.compiler.targets import ResolvedTarget
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.prior import Expectation, Prior, prior_of
from tunegate.tune.protocol import Schedule
from tunegate.tune.samples import SampleFeatures, SampleSpace, ScheduleSample
from tunegate.tune.surrogate import SamplePools
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import TuningRecord, WorkloadKey

PICKED: tuple[ScheduleSource, ...] = ("prior", "transfer")
"""Sources without measurements of the task itself: the prior picks."""


class ScheduleChoice(NamedTuple):
    """A kernel's schedule: `main` is None for the default one. `record` is its record, `picked` the
    decisions of a pick without a record."""

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
    """Returns the best of the function's own records. With others' records (`source`) the prior
    chooses among them and its own first pick; its word counts more than the nearest neighbour's."""
    own = records.get(function.workload.digest, ())
    pick = _pick_by_prior(function, own, target.target) if source in PICKED else None
    return pick or ScheduleChoice(function, *best_that_replays(function, own, target.target))


def without_schedules(
    choices: Iterable[ScheduleChoice], names: Collection[str]
) -> list[ScheduleChoice]:
    """Returns the choices with the default schedule for these kernels."""
    return [
        ScheduleChoice(choice.function, None, None) if choice.function.name in names else choice
        for choice in choices
    ]


def as_before(
    choices: Iterable[ScheduleChoice], how: HowBuilt, target: str
) -> list[ScheduleChoice]:
    """Returns the choices an earlier build on this target made: its schedules where they are the
    same here, else the default."""
    marks = set(how.kept)
    return [
        choice
        if choice.schedule is not None and _mark(choice, choice.schedule, target) in marks
        else ScheduleChoice(choice.function, None, None)
        for choice in choices
    ]


def _mark(choice: ScheduleChoice, schedule: Schedule, target: str) -> int:
    return mark_of(record_id(WorkloadKey(choice.function.workload.digest, target), schedule))


def _pick_by_prior(
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
    pick = prior_pick(function.workload, target, space, prior, offers=refits, failures=failed)
    if pick is None:
        return None
    main = _scheduled_main(pick.replayed)
    neighbour = refits.get(pick.schedule)
    if neighbour is None:
        return ScheduleChoice(function, main, None, pick.schedule)
    picked_record = msgspec.structs.replace(neighbour, decisions=pick.schedule.decisions)
    return ScheduleChoice(function, main, picked_record)


def best_that_replays(
    function: ModelFunction, records: tuple[TuningRecord, ...], target: Any
) -> tuple[Any | None, TuningRecord | None]:
    usable = [record for record in records if record.status == "ok"]
    if not usable:
        return None, None
    space = DesignSpace(function.workload, target)
    for record, candidate in _best_first(usable, space, function.workload.digest, target):
        if not record.template:
            return None, record  # the default schedule was measured, and nothing was faster
        schedule = space.replay(candidate)
        if schedule is not None:
            replayed_record = msgspec.structs.replace(record, decisions=candidate.decisions)
            return _scheduled_main(schedule), replayed_record
    return None, None


def _scheduled_main(schedule: Any) -> Any:
    main = schedule.mod["main"].without_attr("global_symbol")
    return main.with_attr(IS_SCHEDULED, True)


def _schedule_of(record: TuningRecord) -> Schedule:
    return Schedule(record.template, record.decisions)


def _best_first(
    records: Sequence[TuningRecord], space: DesignSpace, workload: str, target: Any
) -> list[tuple[TuningRecord, Schedule]]:
    """Returns the records in order: by time, or for neighbours, whose times mean nothing here, by
    expected speed. A neighbour's schedule is refitted to these extents: TVM's own repair may make
    an untried tile that takes minutes to compile."""
    schedules = [_schedule_of(record) for record in records]
    if records[0].key.workload == workload:
        return list(zip(records, schedules, strict=True))
    refits = [space.refit(schedule) for schedule in schedules]
    fitting = [(r, refit) for r, refit in zip(records, refits, strict=True) if refit is not None]
    features = SampleFeatures(space.sampling(), space.sketches())
    expect = expectation(features, prior_of(str(target.kind.name)))
    return [fitting[place] for place in likeliest([refit for _, refit in fitting], expect)]


def record_id(key: WorkloadKey, schedule: TuningRecord | Schedule) -> str:
    """Returns the identity of a candidate, however often it was measured."""
    text = msgspec.json.encode([key.workload, key.target, schedule.template, schedule.decisions])
    return hashlib.sha256(text).hexdigest()


def apply_choices(module: Any, choices: Iterable[ScheduleChoice]) -> Any:
    """Returns the module with these schedules."""
    new_module = module.clone()
    for choice in choices:
        if choice.main is not None:
            name = new_module.get_global_var(choice.function.name)
            new_module.update_func(name, choice.main)
    return new_module


def source_of(function: ModelFunction, request: BuildModel) -> ScheduleSource:
    """Returns where the kernel's records come from."""
    return cast("ScheduleSource", request.sources.get(function.workload.digest, "exact"))


# The schedule that the prior expects to be fastest, where nothing can be measured. One-Shot Tuner
# (CC 2022) builds with the first pick of a model trained on other tasks. Here the pick depends only
# on the workload, the target, the prior and the neighbours' records, so base and head share it.

_MOST_REPLAYS = 24
"""At most this many samples are replayed; if none fits, there is no pick."""


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
    offers: Collection[Schedule] = (),
    failures: Collection[Schedule] = (),
) -> PriorPick | None:
    """Returns the likeliest of the `offers` and sampled schedules, without the `failures`.
    Returns None if the prior abstains: there is none for the target, it does not know the loop
    nest, or it was never trained on the operator (as grouped convolutions, whose default schedule
    is faster than its pick). On GPUs no pick has been measured."""
    kind = str(target.kind.name)
    if prior is None or kind != "llvm" or not _is_known(workload, space):
        return None
    seed = int(workload.digest[:16], 16)
    samples = _rank_samples(space, prior, kind, seed, [_sample(each) for each in offers])
    without = {_sample(each) for each in failures}
    for number, sample in enumerate(each for each in samples if each not in without):
        if number == _MOST_REPLAYS:
            return None
        schedule = space.replay(Schedule(*sample))
        description = None if schedule is None else space.describe(schedule.trace)
        if description is not None and _sample(description) not in without:
            return PriorPick(schedule, description)
    return None


def _is_known(workload: Workload, space: DesignSpace) -> bool:
    """Returns whether a prior may know the operator: grouped convolutions, with vector steps or
    asked to have none, it does not."""
    sketches = space.sketches().values()
    main = workload.module["main"]
    is_grouped = any(sketch.lanes > 1 for sketch in sketches) or (
        asked_algorithm(main) == DIRECT and grouped_convolution(main) is not None
    )
    return any(sketch.nest for sketch in sketches) and not is_grouped


def _rank_samples(
    space: DesignSpace, prior: Prior, kind: str, seed: int, offers: Sequence[ScheduleSample]
) -> Iterator[ScheduleSample]:
    """Yields the samples that the prior knows, the likeliest first."""
    sampling = space.sampling()
    features = SampleFeatures(sampling, space.sketches())
    seldom = [d for d, t in space.templates.items() if t.variant.is_seldom_best]
    rng = random.Random(seed)  # noqa: S311 -- a search, not a secret
    samples = SampleSpace(sampling, rng, seldom=seldom)
    pools = SamplePools(samples, features, kind)
    pool, _ = pools.draw_pool(offers, ())
    fitting = [each for each in offers if not features.is_hopeless(each, kind)]
    scores = pools.breed(prior.ratios, [*fitting, *pool], (), ())
    for sample in sorted(scores, key=lambda each: -scores[each]):
        if prior.knows([features.of(sample)])[0]:
            yield sample


def _sample(schedule: Schedule) -> ScheduleSample:
    return ScheduleSample(schedule.template, schedule.decisions)


# Chooses the neighbours' schedules that are worth compiling. Neighbours offer dozens, each in two
# adaptations. Many tasks never get more than their first batch, so the order decides more than the
# number (docs/benchmarks).

MAX_TRANSFERRED = 8
"""The number of neighbours' schedules to try. Each is replayed twice, which takes as long as
picking a batch of samples."""
Expect = Callable[[Sequence[Schedule]], Sequence[float]]
"""Predicts a score for each schedule of this space, (n,) floats; larger is better."""


class Transferred(NamedTuple):
    """`fitting` are TVM schedules, the likeliest first, each described once. `misfits` fit in
    neither adaptation."""

    fitting: list[Any]
    misfits: int


def transferred_schedules(
    foreign: Sequence[Schedule],
    space: DesignSpace,
    expect: Expect | None,
    most: int = MAX_TRANSFERRED,
) -> Transferred:
    """Adapts the likeliest `most` of `foreign`, by TVM's own repair and by nearest divisors, and
    returns the likeliest `most` of the results. Without `expect` the order of `foreign` (nearest
    first) decides."""
    refits = [space.refit(schedule) for schedule in foreign]
    places = [n for n, refit in enumerate(refits) if refit is not None]
    order = likeliest([refit for refit in refits if refit is not None], expect)
    adaptations: dict[Schedule, Any] = {}
    misfits = len(foreign) - len(places)
    for place in order[:most]:
        number = places[place]
        fitting = _replay_variants(space, [foreign[number], refits[number]])
        misfits += not fitting
        adaptations |= fitting
    schedules = list(adaptations)
    best = likeliest(schedules, expect)[:most]
    return Transferred([adaptations[schedules[place]] for place in best], misfits)


def _replay_variants(
    space: DesignSpace, variants: Sequence[Schedule | None]
) -> dict[Schedule, Any]:
    schedules = {}
    for variant in dict.fromkeys(variants):  # one that fits as it is has one adaptation
        schedule = None if variant is None else space.replay(variant)
        description = None if schedule is None else space.describe(schedule.trace)
        if description is not None:
            schedules[description] = schedule
    return schedules


def expectation(features: SampleFeatures, prior: Expectation | None) -> Expect | None:
    if prior is None:
        return None

    def expect(schedules: Sequence[Schedule]) -> list[float]:
        rows = [
            features.of(ScheduleSample(schedule.template, schedule.decisions))
            for schedule in schedules
        ]
        return [float(ratio) for ratio in prior.ratios(rows)]

    return expect


def likeliest(schedules: Sequence[Schedule], expect: Expect | None) -> list[int]:
    """Returns the indices of the schedules, the highest expectation first; ties keep their
    order."""
    if expect is None or not schedules:
        return list(range(len(schedules)))
    scores = expect(schedules)
    return sorted(range(len(schedules)), key=lambda place: -scores[place])
