"""The best known record of every task when a model is built, and its source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tunegate.artifacts.builds import Build, CellCandidates
from tunegate.artifacts.candidates import LAUNCH
from tunegate.artifacts.changes import ModelChange, ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import UNMEASURED, RecordOrigin, ScheduleSource, TuningTask
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob
from tunegate.tools import Tools
from tunegate.tune.claims import has_only_older
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Miss,
    Provenance,
    TransferHit,
    TuningRecord,
    WorkloadKey,
)

_UNTRIED = ("not-started", "shared", "behind")
"""Endings of a task for which nothing ran."""


class BestRecords(NamedTuple):
    """The records of every task, best first, and their sources."""

    records: dict[WorkloadKey, tuple[TuningRecord, ...]]
    sources: dict[WorkloadKey, ScheduleSource]


def best_records(
    plan: TuningPlan, outcomes: Sequence[TuningOutcome], origin: RecordOrigin
) -> BestRecords:
    """Returns the best records of every task, for builds of `origin`.

    Records of this run come first, then those of trusted zones. A task without either gets what the
    prior picks, from its neighbours' records too, marked as unverified. Nothing is picked if all
    its models stay far behind another runtime: a pick makes the build dearer and would not ship. An
    unmeasured claim of the run's own zone is used only if trusted zones have nothing, and then on
    both sides. Records of an older toolchain are marked where no tuning said so: a plan for several
    machines has no job for tasks without a trial.
    """
    best, sources = _trusted_records(plan, origin)
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    for task in tasks:
        own = _of(task.key, task.records)
        if own:
            best[task.key] = own + _of(task.key, best.get(task.key, ()))
            sources[task.key] = task.source
    keys = {*best, *(task.key for task in tasks if task.stopped not in _UNTRIED)}
    for entry in plan.resolution.tasks:
        key = entry.task.key
        if entry.skipped == "behind" and sources.get(key, "transfer") == "transfer":
            best.pop(key, None)
            sources.pop(key, None)
            continue
        if key in keys:
            continue
        if entry.claims is not None:
            best[key], sources[key] = entry.claims.records, "claimed"
        else:
            best[key], sources[key] = entry.lookup.failures, "prior"
    return BestRecords(best, sources)


def _of(key: WorkloadKey, records: Iterable[TuningRecord]) -> tuple[TuningRecord, ...]:
    return tuple(record for record in records if record.key == key)


def _trusted_records(plan: TuningPlan, origin: RecordOrigin) -> BestRecords:
    best: dict[WorkloadKey, tuple[TuningRecord, ...]] = {}
    sources: dict[WorkloadKey, ScheduleSource] = {}
    for entry in plan.resolution.tasks:
        match entry.lookup:
            case ExactHit(records=records):
                best[entry.task.key] = records
                is_older = has_only_older(records, origin.toolchain, origin.device)
                sources[entry.task.key] = "older" if is_older else "exact"
            case TransferHit(records=records, failures=failures):
                best[entry.task.key] = (*records, *failures)
                sources[entry.task.key] = "transfer"
            case Miss():
                pass
    return BestRecords(best, sources)


# One schedule on both sides for shared tasks, also if the model decides about it. A schedule is
# tried inside the model, and dropped if the default is faster. Two sides that decide separately
# could differ by chance, and the comparison would see it. So the base decides for both.


class DecidedByBase(NamedTuple):
    """The tasks that both sides of a model have and whose schedule is tried inside it. With
    `is_alike` the sides differ in weights only."""

    keys: frozenset[WorkloadKey]
    is_alike: bool = False


def decided_by_base(
    plan: TuningPlan,
    sources: Mapping[WorkloadKey, ScheduleSource],
    targets: Iterable[TargetConfig],
) -> dict[ModelPath, DecidedByBase]:
    """Returns what each model's base decides for its head: on a GPU about schedules that were never
    measured, and about what a form of the model chooses by times."""
    cpus = {target.name for target in targets if target.kind == "llvm"}
    alike = {change.path for change in plan.changes.models if _is_alike(change)}
    keys_of_model: dict[ModelPath, set[WorkloadKey]] = {}
    for entry in plan.resolution.tasks:
        # Weights may decide a shape, such as how many of them are not zero.
        alike -= {use.model for use in entry.task.uses} - {*_shared_by(entry.task)}
        source = sources.get(entry.task.key)
        is_on_cpu = entry.task.target in cpus
        is_tried = source is not None and (is_on_cpu or source in UNMEASURED)
        for model in _shared_by(entry.task):
            if is_tried or not is_on_cpu:
                keys = keys_of_model.setdefault(model, set())
                keys |= {entry.task.key} if is_tried else set()
    return {
        model: DecidedByBase(frozenset(keys), is_alike=model in alike)
        for model, keys in keys_of_model.items()
    }


def as_in_base(job: BuildJob, of_base: BuildJob, base: Build, by_base: DecidedByBase) -> BuildJob:
    """Returns the job of the head, with the base's schedules for these tasks. A model whose sides
    differ in weights only is built and cut as its base was. A base that could not be built decides
    nothing."""
    if base.error is not None:
        return job
    if by_base.is_alike and base.how is not None and job.model.shapes == of_base.model.shapes:
        return msgspec.structs.replace(job, how=base.how)
    with_record = {task.key for task in base.tasks if task.rid}
    keys = by_base.keys & {task.key for task in base.tasks}
    marks = base.how.kept if base.how is not None and LAUNCH in job.settings else ()
    job = job.with_default_schedules(keys - with_record)
    return msgspec.structs.replace(job, settled=keys, decided=marks)


def _is_alike(change: ModelChange) -> bool:
    base, head = change.base, change.head
    if base is None or head is None or not base.graph_digest:
        return False
    return base.graph_digest == head.graph_digest


def _shared_by(task: TuningTask) -> list[ModelPath]:
    sides = {(use.model, use.side) for use in task.uses}
    return [model for model, side in sides if side == "base" and (model, "head") in sides]


# Records that mark a schedule as computing other numbers.
#
# A mark is the record of a failed candidate, as the search writes them. The cache answers with the
# latest record of a candidate, so a mark removes the schedule from answers, for base and head
# alike. A forged mark costs speed and nothing else: every build is checked, whatever the cache
# says.

_NOBODY = Provenance()


def publish_wrong_marks(tools: Tools, candidates: Sequence[CellCandidates]) -> None:
    """Publishes the marks of schedules that compute other numbers."""
    builds = [build for candidate in candidates for build in (*candidate.base, *candidate.head)]
    origin, now = tools.origin, int(tools.context.clock.time())
    marks = mark_wrong_records(builds, origin.device, now, origin.source)
    if marks:
        tools.index.publish(marks)


def mark_wrong_records(
    builds: Iterable[Build],
    device: DeviceFingerprint,
    measured_at: int,
    source: Provenance = _NOBODY,
) -> tuple[TuningRecord, ...]:
    """Returns one mark for each schedule that made a build compute other numbers."""
    marks = [
        TuningRecord(
            key=kernel.key,
            shape=kernel.shape,
            template=kernel.template,
            decisions=kernel.decisions,
            run_nanoseconds=(),
            status="wrong",
            device=device,
            toolchain=kernel.toolchain,
            measured_at=measured_at,
            source=source,
        )
        for build in builds
        for kernel in build.wrong_kernels
    ]
    return tuple(dict.fromkeys(marks))
