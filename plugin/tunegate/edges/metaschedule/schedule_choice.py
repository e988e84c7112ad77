"""The schedule of each kernel of a build: the best of its records that replays, or the default."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tunegate.cost_model.prior import prior_of
from tunegate.cost_model.sample_features import SampleFeatures
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.passes.unscheduled import IS_SCHEDULED
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.metaschedule.transferred import expectation, likeliest
from tunegate.engine.protocol import Schedule
from tunegate_cache.format.records import TuningRecord, WorkloadKey


class ScheduleChoice(NamedTuple):
    """`main` is None for the default schedule; `record` is what it came from."""

    function: ModelFunction
    main: Any | None
    record: TuningRecord | None


def chosen_schedule(
    function: ModelFunction,
    records: Mapping[str, tuple[TuningRecord, ...]],
    target: ResolvedTarget,
) -> ScheduleChoice:
    found = records.get(function.workload.digest, ())
    return ScheduleChoice(function, *best_that_replays(function, found, target.target))


def without_schedules(
    choices: Iterable[ScheduleChoice], names: Collection[str]
) -> list[ScheduleChoice]:
    """The choices, the kernels of these names with their default schedule."""
    return [
        ScheduleChoice(choice.function, None, None) if choice.function.name in names else choice
        for choice in choices
    ]


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
            main = schedule.mod["main"].without_attr("global_symbol")
            used = msgspec.structs.replace(record, decisions=wanted.decisions)
            return main.with_attr(IS_SCHEDULED, True), used
    return None, None


def _in_order(
    records: Sequence[TuningRecord], space: DesignSpace, workload: str, target: Any
) -> list[tuple[TuningRecord, Schedule]]:
    """The best first: by their times, or, of neighbours, whose times say nothing here, by what is
    expected of them. A neighbour's schedule is moved to the extents here: TVM's own repair may make
    a tile that takes minutes to compile, and nobody has tried."""
    schedules = [Schedule(record.template, record.decisions) for record in records]
    if records[0].key.workload == workload:
        return list(zip(records, schedules, strict=True))
    refits = [space.refit(schedule) for schedule in schedules]
    fitting = [(r, refit) for r, refit in zip(records, refits, strict=True) if refit is not None]
    features = SampleFeatures(space.sampling(), space.sketches())
    expect = expectation(features, prior_of(str(target.kind.name)))
    return [fitting[place] for place in likeliest([refit for _, refit in fitting], expect)]


def record_id(key: WorkloadKey, record: TuningRecord) -> str:
    """Identity of the candidate, however often it was measured."""
    text = msgspec.json.encode([key.workload, key.target, record.template, record.decisions])
    return hashlib.sha256(text).hexdigest()
