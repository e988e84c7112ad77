"""Compares how many samples a batch looks at: small and usual batches, chosen from more and from
fewer.

    python -m benchmarks.tuning.search_effort squeezenet transformer-128
        [--counts 2 8] [--seeds 2] [--tasks 7]

Of each model the tasks that compute most; of each the first batch, as the prior picks it. A row
says what finding it took, and how much slower its best candidate is than the best of all rows, as
the geometric mean over tasks and seeds. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.kit.averages import geometric
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import RESOLVED, heaviest, measured
from benchmarks.kit.models import one_thread
from benchmarks.kit.tables import heading
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search import search as search_module
from tunegate.compiler.search.search import TaskSearch
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Candidate, Schedule


class Effort(NamedTuple):
    """Samples of a pool, and pools made from the best of the one before."""

    samples: int
    generations: int


EFFORTS = (Effort(64, 0), Effort(192, 0), Effort(512, 2), Effort(512, 5), Effort(1024, 4))


class Batch(NamedTuple):
    """Seconds of CPU that finding it took, and the best time in it."""

    seconds: float
    best_ms: float


def main() -> None:
    options = command_line(__doc__, "models...", counts=[2, 8], seeds=2, tasks=7)
    one_thread()
    load_intrinsics("llvm")
    found: dict[tuple[int, Effort], list[Batch]] = {}
    best: list[float] = []
    for name in options.models:
        with scratch_folder() as folder:
            for function in heaviest(name, folder / "m")[: options.tasks]:
                rows = batches_of(function, options, folder)
                best += [min(b.best_ms for its in rows.values() for b in its)] * options.seeds
                for key, its in rows.items():
                    found.setdefault(key, []).extend(its)
                print(name, function.label, flush=True)
    show(found, best)


def batches_of(
    function: ModelFunction, options: argparse.Namespace, folder: Path
) -> dict[tuple[int, Effort], list[Batch]]:
    place = folder / function.workload.digest
    place.mkdir()
    known: dict[Schedule, float] = {}
    found: dict[tuple[int, Effort], list[Batch]] = {}
    for seed in range(1, options.seeds + 1):
        for count in options.counts:
            for effort in EFFORTS:
                seconds, candidates = first_batch(function, seed, count, effort)
                times = [time_of(candidate, known, place) for candidate in candidates]
                found.setdefault((count, effort), []).append(Batch(seconds, min(times)))
    return found


def first_batch(
    function: ModelFunction, seed: int, count: int, effort: Effort
) -> tuple[float, list[Candidate]]:
    """The first batch without the default schedule, which is measured for the first of them all."""
    search = TaskSearch(function.workload, RESOLVED.target, seed=seed, prior=prior_of("llvm"))
    with (
        patch.object(search_module, "_POOL", effort.samples),
        patch.object(search_module, "_GENERATIONS", effort.generations),
    ):
        started = time.process_time()
        candidates = search.propose(count, ()).candidates
        return time.process_time() - started, list(candidates)


def time_of(candidate: Candidate, known: dict[Schedule, float], place: Path) -> float:
    """The same schedule is measured once; the default one is no candidate."""
    if candidate.schedule not in known:
        result = measured(candidate, math.inf, place)
        is_ok = result.status == "ok" and candidate.origin != "default"
        known[candidate.schedule] = result.median_ms if is_ok else math.inf
    return known[candidate.schedule]


def show(found: dict[tuple[int, Effort], list[Batch]], best: list[float]) -> None:
    heading("candidates | samples | generations more | CPU s | best, of the best of all", words=())
    for (count, effort), batches in found.items():
        seconds = statistics.median(batch.seconds for batch in batches)
        behind = geometric([b.best_ms / ms for b, ms in zip(batches, best, strict=True)])
        row = f"| {count} | {effort.samples} | {effort.generations} "
        print(f"{row}| {seconds:.2f} | {behind:.3f} |", flush=True)


if __name__ == "__main__":
    main()
