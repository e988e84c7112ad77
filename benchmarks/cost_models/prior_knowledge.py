"""Judges the prior on models that it was not learned from: the search with and without it.

    python -m benchmarks.cost_models.prior_knowledge squeezenet transformer-128
        [--tasks 4] [--trials 48] [--seeds 2]
        [--cpu haswell] [--held-out]

Of each model the tasks that compute most are searched alone, each with the same number of trials,
in turn with the prior, with the prior alone (nothing is learned from the task), without it, and
with neither prior nor surrogate. Prints two tables of
docs/benchmarks: what the prior is worth for shipped operators that it was not fitted to, and the
best times after so many trials. With `--cpu` the candidates are compiled for another processor than
this one, which this one must be able to run. With `--held-out` only the first table is made, and
beside it that of a prior whose labels are shuffled.
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
from research.experience.judging.rankers import with_shuffled_times

from benchmarks.kit.averages import geometric
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import heaviest, measured
from benchmarks.kit.models import TARGET, one_thread
from benchmarks.kit.tables import heading, row
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.workload import Workload
from tunegate.compiler.targets import ResolvedTarget, tvm_target
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.prior import (
    Prior,
    TaskExperience,
    experience_of,
    nest_columns,
    prior_of,
    ratios_of,
)
from tunegate.tune.surrogate import Score, Surrogate

BATCH = 8
LOOKS = (8, 16, 32, 48)
FIRST = (1, 8, 32)
"""The numbers of candidates of which the best is compared with the best of all."""
FOLDS = 8
DRAWS = 300
VARIANTS = ("prior", "frozen prior", "no prior", "no filter")


def main() -> None:
    options = command_line(
        __doc__,
        "models...=squeezenet transformer-128",
        tasks=4,
        trials=48,
        seeds=2,
        cpu="native",
        held_out=False,
    )
    one_thread()
    load_intrinsics("llvm")
    resolved = tvm_target(msgspec.structs.replace(TARGET, cpu=options.cpu))
    tasks = experience_of("llvm")
    show_held_out(tasks, tasks)
    if options.held_out:
        show_held_out([with_shuffled_times(task) for task in tasks], tasks)
        return
    looks = [look for look in LOOKS if look <= options.trials]
    print(f"| | {' | '.join(f'after {look}' for look in looks)} |")
    print(f"|---|{'--:|' * len(looks)}")
    for name in options.models:
        with scratch_folder() as scratch:
            show_model(name, options, looks, scratch, resolved)


def show_held_out(taught: Sequence[TaskExperience], tasks: Sequence[TaskExperience]) -> None:
    firsts = " | ".join(f"best of its first {count}" for count in FIRST)
    chance = " | ".join(f"of {count} at random" for count in FIRST)
    heading(f"operators | of them | rank correlation | {firsts} | {chance}")
    found = judged_in_folds(taught, tasks)
    for kind, rows in [*found.items(), ("all", [each for its in found.values() for each in its])]:
        correlation, *regrets = zip(*rows, strict=True)
        means = (f"{geometric(each):.2f}" for each in regrets)
        row(kind, len(rows), f"{statistics.mean(correlation):.2f}", *means)


def judged_in_folds(
    taught: Sequence[TaskExperience], tasks: Sequence[TaskExperience]
) -> dict[str, list[list[float]]]:
    """The tasks by operator, each as a prior judges it that has not seen it; `taught` are the same
    tasks as it is taught them."""
    found: dict[str, list[list[float]]] = {}
    for fold in range(FOLDS):
        prior = Prior([task for number, task in enumerate(taught) if number % FOLDS != fold])
        for task in tasks[fold::FOLDS]:
            found.setdefault(task.name.split()[0], []).append(judged(prior, task))
    return found


def judged(prior: Prior, task: TaskExperience) -> list[float]:
    """Spearman's correlation, and the best times of so many rows over the best of all: of those
    that the prior would take first, and of random ones on average."""
    expected = prior.ratios([nest_columns(task.sketches[n], values) for n, _, values in task.rows])
    ratios = np.array(ratios_of(task))
    ranked = ratios[np.argsort(-expected)]
    random = np.random.default_rng(0)
    drawn = [random.permutation(ratios) for _ in range(DRAWS)]
    return [
        rank_correlation(expected.tolist(), ratios.tolist()),
        *(1 / float(max(ranked[:count])) for count in FIRST),
        *(geometric([1 / float(max(each[:count])) for each in drawn]) for count in FIRST),
    ]


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
    prior = prior_of("llvm") if variant in {"prior", "frozen prior"} else None
    search = TaskSearch(workload, target, seed=seed, filters=variant != "no filter", prior=prior)
    if variant == "frozen prior":
        search._surrogate = FrozenPrior(search._surrogate.prior)
    return search


class FrozenPrior(Surrogate):
    """Scores by what is known of other tasks, whatever this one's times are."""

    def score(self) -> Score | None:
        return None if self.prior is None else self.prior.ratios


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
