"""Measures the costs and gains of tuning on a GPU: one model, so many seconds, candidate by
candidate.

    python -m benchmarks.tuning.gpu_tuning transformer-128 [--seconds 90] [--per-task 64 --tasks 4]

Prints trials a second, where a candidate's time goes, and the sum over all tasks before and after.
With `--per-task` the tasks that compute most have so many candidates each. The second table has for
each task the best of all its candidates by the best of its first eight: 0.9 is a goal.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.our_model import lasting, tasks_of, tuned
from benchmarks.kit.tables import heading, row
from tunegate.config import TargetConfig
from tunegate_cache.format.records import Miss, TuningRecord

GPU = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=60.0)
_FIRST = 8


def main() -> None:
    options = command_line(__doc__, "model", seconds=90.0, per_task=0, tasks=0)
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = sorted(tasks_of(model, GPU, scratch), key=lambda task: -task.flops)
        tasks = tasks[: options.tasks or None]
        budget = lasting(options.seconds)
        if options.per_task:
            budget = msgspec.structs.replace(budget, trials_per_task=options.per_task)
        records: list[TuningRecord] = []

        def publish(batch: Sequence[TuningRecord]) -> bool:
            records.extend(batch)
            return True

        answers = dict.fromkeys((task.key for task in tasks), Miss("absent"))
        started = time.monotonic()
        outcomes = tuned(model, GPU, tasks, answers, budget, publish, scratch)
        spent = time.monotonic() - started
    weights = {task.key: sum(use.weight for use in task.uses) for task in tasks}
    costs = [cost for outcome in outcomes.values() for cost in outcome.costs]
    before, after = (
        sum(weights[key] * (getattr(o, name) or 0.0) for key, o in outcomes.items())
        for name in ("before_ms", "best_ms")
    )
    trials = sum(outcome.trials for outcome in outcomes.values())
    failures = sum(sum(outcome.failures.values()) for outcome in outcomes.values())
    heading("model | seconds | trials | failed | a second | build s | run s | before ms | after ms")
    print(
        f"| {options.model} | {spent:.0f} | {trials} | {failures} | {trials / spent:.2f} | "
        f"{statistics.median(c.build_seconds for c in costs):.2f} | "
        f"{statistics.median(c.run_seconds for c in costs):.2f} | {before:.3f} | {after:.3f} |"
    )
    heading(f"task | candidates | best of the first {_FIRST}, ms | best, ms | share reached")
    for task in tasks:
        times = list(_times_in_order([each for each in records if each.key == task.key]))
        first, best = (min(some, default=math.inf) for some in (times[:_FIRST], times))
        share = f"{best / first:.2f}" if math.isfinite(first) else "0"
        row(task.uses[0].name, len(times), f"{first:.4f}", f"{best:.4f}", share)


def _times_in_order(records: Sequence[TuningRecord]) -> Iterator[float]:
    """Yields the first time of each candidate that was searched, infinite for one that failed."""
    seen = set()
    for record in records:
        schedule = record.template, record.decisions
        if record.template and schedule not in seen:
            seen.add(schedule)
            yield record.median_ms if record.status == "ok" else math.inf


if __name__ == "__main__":
    main()
