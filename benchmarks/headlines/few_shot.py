"""MetaTune (Ryu and Sung, 2021): what was learned before, adapted by the task, at equal trials.

What adapts here are boosted trees over the prior's expectation; nothing is meta-trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kit.averages import geometric
from kit.in_process import RESOLVED, heaviest
from kit.models import one_thread
from prior_knowledge import best_after, search_of

from headlines.headline import Figure
from tunegate.edges.metaschedule.intrinsics import load_intrinsics

MODELS = ("squeezenet", "transformer-128")
TASKS, SEEDS = 2, 1
TRIALS, FIRST = 24, 8
ADAPTED, FROZEN, SCRATCH = "prior", "frozen prior", "no prior"


def figures(scratch: Path) -> Iterator[Figure]:
    one_thread()
    load_intrinsics("llvm")
    curves: dict[str, list[list[float]]] = {ADAPTED: [], FROZEN: [], SCRATCH: []}
    for name in MODELS:
        for number, function in enumerate(heaviest(name, scratch / name)[:TASKS]):
            for seed in range(1, SEEDS + 1):
                for variant, its in curves.items():
                    place = scratch / f"{name}-{number}-{seed}-{variant}"
                    place.mkdir()
                    search = search_of(function.workload, RESOLVED.target, seed, variant)
                    its.append(best_after(search, TRIALS, place, RESOLVED))
    scores = [
        f"{over(curves, SCRATCH, trials):.2f} and {over(curves, FROZEN, trials):.2f} after {trials}"
        for trials in (FIRST, TRIALS)
    ]
    on = f"{TASKS} tasks of each of {' and '.join(MODELS)}, {SEEDS} seeds; nothing is meta-trained"
    yield Figure("few-shot", "scratch, frozen: " + "; ".join(scores), on)


def over(curves: dict[str, list[list[float]]], variant: str, trials: int) -> float:
    pairs = zip(curves[variant], curves[ADAPTED], strict=True)
    return geometric([one[trials - 1] / adapted[trials - 1] for one, adapted in pairs])
