"""What is known before the first trial, on models that it was not learned from:
the search with and without it.

    python benchmarks/prior_knowledge.py squeezenet transformer-128
        [--tasks 4] [--trials 48] [--seeds 2]
        [--cpu haswell]

Of each model the tasks that compute most are searched alone, each with the same number of trials,
in turn with the prior, without it, and with neither prior nor surrogate. Prints two tables of
docs/benchmarks.md: what the prior is worth for shipped operators that it was not fitted to, and the
best times after so many trials. With `--cpu` the candidates are compiled for another processor than
this one, which this one must be able to run.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from kit.averages import geometric
from kit.command import command_line, scratch_folder
from kit.in_process import heaviest, measured
from kit.models import TARGET, one_thread
from kit.tables import heading, row

from tunegate.cost_model.experience import TaskExperience, nest_columns
from tunegate.cost_model.prior import Prior, experience_of, prior_of, ratios_of
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.search import TaskSearch
from tunegate.edges.metaschedule.targets import ResolvedTarget, tvm_target
from tunegate.edges.metaschedule.workload import Workload
from tunegate.tuning.candidate_filter import rank_correlation

BATCH = 8
LOOKS = (8, 16, 32, 48)
FOLDS = 8
DRAWS = 300
VARIANTS = ("prior", "no prior", "no filter")


def main() -> None:
    options = command_line(
        __doc__, "models...=squeezenet transformer-128", tasks=4, trials=48, seeds=2, cpu="native"
    )
    one_thread()
    load_intrinsics("llvm")
    resolved = tvm_target(msgspec.structs.replace(TARGET, cpu=options.cpu))
    show_held_out(experience_of("llvm"))
    looks = [look for look in LOOKS if look <= options.trials]
    print(f"| | {' | '.join(f'after {look}' for look in looks)} |")
    print(f"|---|{'--:|' * len(looks)}")
    for name in options.models:
        with scratch_folder() as scratch:
            show_model(name, options, looks, scratch, resolved)


def show_held_out(tasks: Sequence[TaskExperience]) -> None:
    heading(
        f"operators | of them | rank correlation | best of its first {BATCH} | of {BATCH} at random"
    )
    found = judged_in_folds(tasks)
    for kind, rows in [*found.items(), ("all", [each for its in found.values() for each in its])]:
        correlation = statistics.mean(each[0] for each in rows)
        first, chance = (geometric([each[i] for each in rows]) for i in (1, 2))
        row(kind, len(rows), f"{correlation:.2f}", f"{first:.2f}", f"{chance:.2f}")


def judged_in_folds(tasks: Sequence[TaskExperience]) -> dict[str, list[tuple[float, float, float]]]:
    """The tasks by operator, each as a prior judges it that has not seen it."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for fold in range(FOLDS):
        prior = Prior([task for number, task in enumerate(tasks) if number % FOLDS != fold])
        for task in tasks[fold::FOLDS]:
            found.setdefault(task.name.split()[0], []).append(judged(prior, task))
    return found


def judged(prior: Prior, task: TaskExperience) -> tuple[float, float, float]:
    """Spearman's correlation, and the best time of `BATCH` rows over the best of all: of those that
    the prior would take first, and of random ones on average."""
    expected = prior.ratios([nest_columns(task.sketches[n], values) for n, _, values in task.rows])
    ratios = np.array(ratios_of(task))
    first = np.argsort(-expected)[:BATCH]
    random = np.random.default_rng(0)
    drawn = [max(random.choice(ratios, BATCH, replace=False)) for _ in range(DRAWS)]
    correlation = rank_correlation(expected.tolist(), ratios.tolist())
    return correlation, 1 / float(max(ratios[first])), geometric([1 / best for best in drawn])


def show_model(
    name: str,
    options: argparse.Namespace,
    looks: Sequence[int],
    scratch: Path,
    resolved: ResolvedTarget,
) -> None:
    chosen = heaviest(name, scratch / "model", resolved)[: options.tasks]
    curves: dict[str, list[list[float]]] = {variant: [] for variant in VARIANTS}
    for number, function in enumerate(chosen):
        for seed in range(1, options.seeds + 1):
            for variant in VARIANTS:
                place = scratch / f"{number}-{seed}-{variant}"
                place.mkdir()
                search = search_of(function.workload, resolved.target, seed, variant)
                best = best_after(search, options.trials, place, resolved)
                curves[variant].append([best[look - 1] for look in looks])
                print(number, seed, variant, curves[variant][-1], flush=True)
    for variant, its in curves.items():
        columns = [geometric(column) for column in zip(*its, strict=True)]
        print(f"| {name}, {variant} | {' | '.join(f'{ms:.3f}' for ms in columns)} |", flush=True)


def search_of(workload: Workload, target: Any, seed: int, variant: str) -> TaskSearch:
    prior = prior_of("llvm") if variant == "prior" else None
    return TaskSearch(workload, target, seed=seed, filters=variant != "no filter", prior=prior)


def best_after(
    search: TaskSearch, trials: int, place: Path, resolved: ResolvedTarget
) -> list[float]:
    """Milliseconds of the best candidate after each trial."""
    best, curve = math.inf, list[float]()
    while len(curve) < trials:
        candidates = search.propose(BATCH, ()).candidates
        results = [measured(candidate, best, place, resolved) for candidate in candidates]
        for candidate, result in zip(candidates, results, strict=True):
            if candidate.origin != "default":
                best = min(best, result.median_ms if result.status == "ok" else math.inf)
                curve.append(best)
        search.learn(results)
    return curve


if __name__ == "__main__":
    main()
