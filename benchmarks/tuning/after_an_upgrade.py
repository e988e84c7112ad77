"""Measures the worth of a tuned cache after an upgrade of the toolchain, in minutes and
milliseconds.

    python -m benchmarks.tuning.after_an_upgrade [--model squeezenet] [--trials 256] [--rounds 40]
        [--older-defaults]

The model is tuned cold, as it was before the upgrade. Its records then become those of an older
revision of the default schedules, and the next run re-elects them against the defaults of today,
in a tenth of the time. Printed are the trials, the time and the processor time of both runs, and
the latency of three builds that run in turn in one process: with default schedules, as tuned cold,
and as re-elected.

With --older-defaults the cold run is that of a tunegate whose default schedules were the loops as
written: what it kept may lose to the defaults of today.

Then one record is replaced by a lie: a schedule that is at least 45% slower than the default one
here, said to be twice as fast as the best. The re-election must find it.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, one_thread, saved
from benchmarks.kit.neighbours import DEVICE
from benchmarks.kit.our_model import build, imported, tuned
from benchmarks.kit.tables import heading, row
from benchmarks.kit.timed_builds import medians_in_turn
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import TuningTask
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.versions import toolchain
from tunegate.ports import ModelJob, Programs
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate_cache.format.records import CONFIRMED_REPEATS, ExactHit, TuningRecord, WorkloadKey
from tunegate_cache.protocol.record_index import RecordIndex

OLDER_PROGRAMS = PROGRAMS._replace(searcher="benchmarks.tuning.older_defaults")
OLDER = msgspec.structs.replace(toolchain(), schedules="of an older revision")
SLOWDOWN = 1.45
SHARE = 0.1
BUILDS = ("default", "cold", "re-elected")


class Run(msgspec.Struct, frozen=True):
    """The outcomes of a run, all that it published, its seconds, and those of the processor."""

    outcomes: dict[WorkloadKey, TaskOutcome]
    records: list[TuningRecord]
    seconds: float
    processor_seconds: float

    @property
    def trials(self) -> int:
        return sum(outcome.trials for outcome in self.outcomes.values())


def main() -> None:
    options = command_line(__doc__, model="squeezenet", trials=256, rounds=40, older_defaults=False)
    before = OLDER_PROGRAMS if options.older_defaults else PROGRAMS
    one_thread()
    load_intrinsics("llvm")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        compiler = MetaScheduleCompiler(scratch / "compiler", seed=1)
        job = ModelJob(file=model, path="m.onnx", shapes={}, target=TARGET)
        tasks = imported(compiler, job)
        trials = Budget(seconds=None, trials=options.trials)
        cold = run_of(model, tasks, {}, trials, scratch, before)
        tenth = Budget(seconds=SHARE * cold.seconds, trials=None)
        again = run_of(model, tasks, as_older(tasks, cold.records), tenth, scratch)
        best = {each: best_of(run) for each, run in (("cold", cold), ("re-elected", again))}
        for name in BUILDS:
            build(compiler, job, best.get(name, {}), scratch / name)
        compiler.close()
        times = medians_in_turn([scratch / name for name in BUILDS], options.rounds)
        show(len(tasks), cold, again, times)
        plant(model, tasks, cold.records, scratch)


def run_of(
    model: Path,
    tasks: Sequence[TuningTask],
    found: Mapping[WorkloadKey, ExactHit],
    budget: Budget,
    scratch: Path,
    programs: Programs = PROGRAMS,
) -> Run:
    records: list[TuningRecord] = []

    def publish(these: Sequence[TuningRecord]) -> bool:
        records.extend(these)
        return True

    began, used = time.monotonic(), processor_seconds()
    outcomes = tuned(model, TARGET, tasks, found, budget, publish, scratch, programs=programs)
    return Run(outcomes, records, time.monotonic() - began, processor_seconds() - used)


def processor_seconds() -> float:
    """Returns the seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def as_older(
    tasks: Sequence[TuningTask], records: Sequence[TuningRecord]
) -> dict[WorkloadKey, ExactHit]:
    """Returns the answers of a cache that an older toolchain wrote."""
    index = RecordIndex(DEVICE, toolchain())
    index.add(msgspec.structs.replace(record, toolchain=OLDER) for record in records)
    found = {task.key: index.exact(task.key) for task in tasks}
    return {key: hit for key, hit in found.items() if hit is not None}


def best_of(run: Run) -> dict[WorkloadKey, tuple[TuningRecord, ...]]:
    return {key: each.records for key, each in run.outcomes.items() if each.records}


def show(tasks: int, cold: Run, again: Run, times: Sequence[float]) -> None:
    heading(
        "run | trials | seconds | processor seconds | kept | lost to defaults | not yet asked | "
        "latency, ms"
    )
    default_ms, cold_ms, again_ms = times
    row("default schedules", 0, *[""] * 5, f"{default_ms:.3f}")
    row("cold", cold.trials, *seconds_of(cold), *[""] * 3, f"{cold_ms:.3f}")
    older = [outcome.older for outcome in again.outcomes.values()]
    counts = [older.count(each) for each in ("kept", "lost", "not-asked")]
    row("after the upgrade", again.trials, *seconds_of(again), *counts, f"{again_ms:.3f}")
    print(
        f"\n{tasks} tasks; {100 * cold_ms / again_ms:.0f}% of the quality in "
        f"{100 * again.trials / cold.trials:.0f}% of the trials and "
        f"{100 * again.seconds / cold.seconds:.0f}% of the time, and "
        f"{100 * again.processor_seconds / cold.processor_seconds:.0f}% of the processor's"
    )


def seconds_of(run: Run) -> tuple[str, str]:
    return f"{run.seconds:.0f}", f"{run.processor_seconds:.0f}"


def plant(
    model: Path, tasks: Sequence[TuningTask], records: Sequence[TuningRecord], scratch: Path
) -> None:
    """Replaces the records of one task by a slow schedule that claims to be the fastest."""
    for task in tasks:
        own = [each for each in records if each.key == task.key and each.status == "ok"]
        default_ms = min((each.median_ms for each in own if not each.template), default=0.0)
        slow = [r for r in own if r.template and r.median_ms >= SLOWDOWN * default_ms > 0]
        if not slow:
            continue
        worst = min(slow, key=lambda record: record.median_ms)
        claim = max(1, round(min(each.median_ms for each in own) * 1e6 / 2))
        lie = msgspec.structs.replace(
            worst, toolchain=OLDER, run_nanoseconds=(claim,) * CONFIRMED_REPEATS
        )
        one = Budget(seconds=None, trials=1)
        run = run_of(model, [task], {task.key: ExactHit((lie,))}, one, scratch)
        outcome = run.outcomes[task.key]
        times = {bool(each.template): each.median_ms for each in outcome.records}
        slower = f" ({100 * (times[True] / times[False] - 1):+.0f}%)" if len(times) > 1 else ""
        print(
            f"planted: {task.operator}, said to take {lie.median_ms:.3f} ms, "
            f"default {default_ms:.3f} ms: {outcome.older}{slower}"
        )
        return
    print(f"planted: none, as no schedule was {SLOWDOWN:g} times slower than its default")


if __name__ == "__main__":
    main()
