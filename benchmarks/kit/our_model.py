"""A model tuned by ours, built after given numbers of seconds: the one side of quality.py."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.kit.curves import Run
from benchmarks.kit.models import saved
from benchmarks.kit.neighbours import DEVICE, answers, cache, exchanged
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import RecordOrigin, ResolvedTask, ScheduleSource, TuningTask
from tunegate.compiler.versions import toolchain
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError
from tunegate.models.reference.onnx_runtime import open_session, timed_options
from tunegate.ports import BuildJob, ModelJob, Programs, Publish
from tunegate.runtimes.runtime import OpenCompiler
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.tune.tuner import EngineTuner, SearchOptions
from tunegate_cache.format.records import (
    Lookup,
    Miss,
    Provenance,
    TransferHit,
    TuningRecord,
    WorkloadKey,
)

Records = dict[str, tuple[TuningRecord, ...]]
"""Those of tasks, by workload."""


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one run: builds by the seconds after which they were possible, the number of
    tasks over 1% of the model that had no schedule then, the number of those whose neighbours the
    cache knew, the records at the end, and the curve."""

    builds: dict[float, Path]
    records: dict[WorkloadKey, tuple[TuningRecord, ...]]
    unscheduled: dict[float, int]
    transfer: int
    tasks: Sequence[TuningTask]
    run: Run


def tune(
    model: Path,
    target: TargetConfig,
    looks: Sequence[float],
    scratch: Path,
    *,
    sources: Path | None = None,
    shuffled: bool = False,
    seed: int = 1,
) -> Tuned:
    """Tune for as long as the last of `looks`, with what the cache in `sources` offers."""
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=target)
    compiler = MetaScheduleCompiler(scratch / "compiler", seed=1)
    tasks = imported(compiler, job)
    found = answers(tasks, sources, scratch)
    if shuffled:
        found = exchanged(found)
    known: list[tuple[float, TuningRecord]] = []
    started = time.monotonic()

    def publish(records: Sequence[TuningRecord]) -> bool:
        known.extend((time.monotonic() - started, record) for record in records)
        return True

    outcomes = tuned(model, target, tasks, found, looks[-1], publish, scratch, seed=seed)
    builds, records = {}, {}
    for look in looks:
        records = records_at(look, known, found)
        if look == looks[-1]:  # the winners have been measured again
            records |= {key: o.records for key, o in outcomes.items() if o.records}
        builds[look] = scratch / f"after-{look:g}"
        build(compiler, job, records, builds[look])
    compiler.close()
    return Tuned(
        builds=builds,
        records=records,
        unscheduled={look: unscheduled(look, known, tasks) for look in looks},
        transfer=sum(isinstance(hit, TransferHit) for hit in found.values()),
        tasks=tasks,
        run=Run(tuple(known), outcomes),
    )


def unscheduled(
    look: float, known: Sequence[tuple[float, TuningRecord]], tasks: Sequence[TuningTask]
) -> int:
    """Tasks over 1% of the model's time for which nothing but the default schedule had run by
    then. Their times are those of the default schedule, also where that was measured later."""
    calls = {task.key: sum(use.weight for use in task.uses) for task in tasks}
    times: dict[WorkloadKey, float] = {}
    scheduled: set[WorkloadKey] = set()
    for seconds, record in known:
        if record.status != "ok" or (record.template and seconds > look):
            continue
        spent_ms = calls[record.key] * record.median_ms
        times[record.key] = min(spent_ms, times.get(record.key, spent_ms))
        if record.template:
            scheduled.add(record.key)
    total_ms = sum(times.values())
    return sum(ms > 0.01 * total_ms and key not in scheduled for key, ms in times.items())


def build(
    compiler: MetaScheduleCompiler,
    job: ModelJob,
    records: Mapping[WorkloadKey, Sequence[TuningRecord]],
    directory: Path,
) -> None:
    sources: dict[WorkloadKey, ScheduleSource] = {
        key: "search" if its[0].key == key else "transfer" for key, its in records.items() if its
    }
    work = BuildJob(model=job, records=records, sources=sources, directory=directory)
    (built,) = compiler.build([work])
    assert built.error is None, built.error


def records_at(
    look: float, known: Sequence[tuple[float, TuningRecord]], found: Mapping[WorkloadKey, Lookup]
) -> dict[WorkloadKey, tuple[TuningRecord, ...]]:
    """The best first; a task without measurements has those of its neighbours."""
    records: dict[WorkloadKey, tuple[TuningRecord, ...]] = {
        key: hit.records for key, hit in found.items() if isinstance(hit, TransferHit)
    }
    measured: dict[WorkloadKey, list[TuningRecord]] = {}
    for seconds, record in known:
        if seconds <= look and record.status == "ok":
            measured.setdefault(record.key, []).append(record)
    for key, its in measured.items():
        records[key] = tuple(sorted(its, key=lambda record: record.median_ms))
    return records


def tasks_of(model: Path, target: TargetConfig, scratch: Path) -> Sequence[TuningTask]:
    compiler = MetaScheduleCompiler(scratch / "compiler", seed=1)
    tasks = imported(compiler, ModelJob(file=model, path="m.onnx", shapes={}, target=target))
    compiler.close()
    return tasks


def records(
    compiler: OpenCompiler,
    model: Path,
    target: TargetConfig,
    seconds: float,
    folder: Path,
) -> Records:
    """Returns what tuning leaves of a model whose tasks this compiler lists, which is closed."""
    tasks = imported(compiler, ModelJob(file=model, path="m.onnx", shapes={}, target=target))
    compiler.close()
    outcomes = tuned(model, target, tasks, {}, seconds, lambda _: True, folder)
    return {key.workload: each.records for key, each in outcomes.items() if each.records}


def imported(compiler: OpenCompiler, job: ModelJob) -> Sequence[TuningTask]:
    (tasks,) = compiler.tasks([job])
    if isinstance(tasks, ModelError):
        raise tasks
    return tasks


def opened_reference(file: Path, threads: int) -> Any:
    """Returns a session of ONNX Runtime for runs in turn with a build in this process. Between its
    inferences its threads rest: the build needs the cores."""
    options = timed_options(threads)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return open_session(file, options, ["CPUExecutionProvider"]).session


def publish_sources(
    names: Sequence[str], target: TargetConfig, seconds: float, scratch: Path
) -> Path:
    """The cache that these models were tuned into, each for so long."""
    sources = scratch / "sources"
    for name in names:
        trials = _publish(saved(name, scratch), target, seconds, sources, scratch / f"d-{name}")
        print(f"source {name}: {trials} trials in {seconds:g} s", flush=True)
    return sources


def _publish(
    model: Path, target: TargetConfig, seconds: float, sources: Path, scratch: Path
) -> int:
    shared = cache(sources, scratch)
    tasks = tasks_of(model, target, scratch)
    found = dict.fromkeys((task.key for task in tasks), Miss("absent"))
    outcomes = tuned(model, target, tasks, found, seconds, shared.publish, scratch)
    return sum(outcome.trials for outcome in outcomes.values())


def lasting(seconds: float) -> Budget:
    """A budget that is used up: no gain is too small."""
    return Budget(seconds=seconds, trials=None, min_gain_percent_per_minute=0.0)


def tuned(
    model: Path,
    target: TargetConfig,
    tasks: Sequence[TuningTask],
    found: Mapping[WorkloadKey, Lookup],
    budget: Budget | float,
    publish: Publish,
    scratch: Path,
    *,
    filters: bool = True,
    seed: int = 1,
    programs: Programs = PROGRAMS,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[WorkloadKey, TaskOutcome]:
    """A number is a budget of so many seconds, used up."""
    allowed = budget if isinstance(budget, Budget) else lasting(budget)
    shard = shard_of(tasks, target, allowed, found)
    tuner = tuner_of(target, scratch, filters=filters, seed=seed, programs=programs)
    shaped = ShapedModel(model, shapes or {})
    return {o.key: o for o in tuner.tune(shard, {("m.onnx", "head"): shaped}, publish)}


def shard_of(
    tasks: Sequence[TuningTask],
    target: TargetConfig,
    budget: Budget,
    found: Mapping[WorkloadKey, Lookup] | None = None,
) -> Shard:
    """A shard of all tasks; `found` is what the cache answers, nothing where it was not asked."""
    known = found or {}
    return Shard(
        index=0,
        target=target.name,
        labels=(),
        tasks=tuple(
            PlannedTask(
                resolved=ResolvedTask(task, known.get(task.key, Miss("absent"))),
                trials=8,
                gain_ms=1.0,
            )
            for task in tasks
        ),
        budget=budget,
        predicted_seconds=0.0,
    )


def tuner_of(
    target: TargetConfig,
    scratch: Path,
    *,
    filters: bool = True,
    seed: int = 1,
    programs: Programs = PROGRAMS,
    on_ray: bool = False,
) -> EngineTuner:
    return EngineTuner(
        config=Config(
            models=(ModelConfig(path="m.onnx"),),
            targets=(target,),
            executor="ray" if on_ray else "local",
        ),
        origin=RecordOrigin(device=DEVICE, toolchain=toolchain(), source=Provenance()),
        clock=time,
        programs=programs,
        scratch=scratch / "tuner",
        seed=1,
        search=SearchOptions(seed=seed, filters=filters),
    )
