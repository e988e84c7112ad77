"""The filter of candidates on and off, at equal trials: best times, and what the trials cost.

    python -m benchmarks.tuning.candidate_filter [--trials 48] [--repeats 3]

Three convolutions of light_squeezenet are tuned together, each as if it were alone: the same number
of trials for all. With the filter off, samples are taken as they come, of which half are random and
half come from the best so far. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import onnx

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.costs import audited, wasted_share
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading
from benchmarks.tuning.cold_tuning import FLOPS_OF_THE_THREE, MODEL, TARGET
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.outcomes import TaskOutcome
from tunegate.artifacts.plans import Budget
from tunegate.models.light_models import seeded_light


def main() -> None:
    options = command_line(__doc__, trials=48, repeats=3)
    rows: dict[bool, list[list[TaskOutcome]]] = {True: [], False: []}
    with scratch_folder() as scratch:
        onnx.save(seeded_light("squeezenet", seed=0), scratch / MODEL)
        for seed in range(1, options.repeats + 1):
            for filters in (True, False):
                place = scratch / f"{seed}-{filters}"
                rows[filters].append(tuned(scratch / MODEL, place, options.trials, seed, filters))
    show(rows, options.trials)


def tuned(model: Path, scratch: Path, trials: int, seed: int, filters: bool) -> list[TaskOutcome]:
    tasks = tasks_of(model, TARGET, scratch)
    found = []
    for task in [task for task in tasks if task.flops in FLOPS_OF_THE_THREE]:
        budget = Budget(seconds=None, trials=trials, min_gain_percent_per_minute=0.0)
        tuner = tuner_of(TARGET, scratch, seed=seed, filters=filters)
        shard = shard_of([task], TARGET, budget)
        *_, last = tuner.tune(shard, {(MODEL, "head"): ShapedModel(model, {})}, lambda _: True)
        found.append(last)
    best = ", ".join(f"{outcome.best_ms:.3f}" for outcome in found)
    print(f"seed {seed}, filter {'on' if filters else 'off'}: {best} ms", flush=True)
    return found


def show(rows: dict[bool, list[list[TaskOutcome]]], trials: int) -> None:
    heading(
        f"{trials} trials | best ms of the three (medians) | geometric mean | "
        f"seconds of workers | of them improved nothing",
        words=(0, 1),
    )
    for filters, runs in rows.items():
        best = np.array([[outcome.best_ms for outcome in run] for run in runs])
        shares = [wasted_share(run) for run in runs]
        print(
            f"| filter {'on' if filters else 'off'} | "
            f"{', '.join(f'{t:.3f}' for t in np.median(best, axis=0))} | "
            f"{float(np.exp(np.mean(np.log(best)))):.3f} | "
            f"{statistics.median(sum(o.seconds for o in run) for run in runs):.0f} | "
            f"{100 * statistics.median(shares):.0f}% |"
        )
    every = [outcome for run in rows[True] for outcome in run]
    looked, wrong = audited(every)
    print(f"audited: {looked} rejected candidates measured, {wrong} within 2% of the best")


if __name__ == "__main__":
    main()
