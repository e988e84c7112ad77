"""What tuning on a GPU costs and brings: one model, so many seconds, candidate by candidate.

    python -m benchmarks.tuning.gpu_tuning transformer-128 [--seconds 90]

Prints trials a second, where a candidate's time goes, and the sum over all tasks before and after.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.our_model import tasks_of, tuned
from benchmarks.kit.tables import heading
from tunegate.config import TargetConfig
from tunegate_cache.format.records import Miss

GPU = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=60.0)


def main() -> None:
    options = command_line(__doc__, "model", seconds=90.0)
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        tasks = tasks_of(model, GPU, scratch)
        answers = dict.fromkeys((task.key for task in tasks), Miss("absent"))
        started = time.monotonic()
        outcomes = tuned(model, GPU, tasks, answers, options.seconds, lambda _: True, scratch)
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


if __name__ == "__main__":
    main()
