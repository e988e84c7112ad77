"""Convolutions with a window tuned with their direct form alone, and
with the matrix product beside it.

    python -m benchmarks.kernels.convolution_forms squeezenet [--trials 48]
        [--seeds 1 2 3]

Every convolution of the model that has both forms gets the same number of candidates of our search,
one thread. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading, row

os.environ["TVM_NUM_THREADS"] = "1"

from tvm.s_tir import meta_schedule as ms

from benchmarks.kit.in_process import RESOLVED, heaviest, measured
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import DIRECT, variants_of
from tunegate.compiler.search import space
from tunegate.compiler.search.search import TaskSearch
from tunegate.tune.protocol import Candidate

BATCH = 8


def main() -> None:
    options = command_line(__doc__, "model", trials=48, seeds=[1, 2, 3])
    load_intrinsics("llvm")
    heading("convolution | times | direct, ms | both, ms | ratio | the best is", words=(0, 5))
    sums = [0.0, 0.0]
    with scratch_folder() as folder:
        for number, function in enumerate(convolutions(options.model, folder)):
            place = folder / str(number)
            direct, both = [], []
            names = []
            for seed in options.seeds:
                with only_direct():
                    direct.append(best_of(function, options.trials, seed, place)[0])
                ms, name = best_of(function, options.trials, seed, place)
                both.append(ms)
                names.append(name)
            a, b = statistics.median(direct), statistics.median(both)
            sums[0] += function.weight * a
            sums[1] += function.weight * b
            shape = "x".join(str(n) for n in arguments(function))
            told = f"{a:.3f} | {b:.3f} | {b / a:.2f} | {', '.join(names)} |"
            print(f"| {shape} | {function.weight} | {told}", flush=True)
    row("all", "", f"{sums[0]:.2f}", f"{sums[1]:.2f}", f"{sums[1] / sums[0]:.2f}", "")


@contextmanager
def only_direct() -> Iterator[None]:
    with patch.object(space, "variants_of", lambda module, kind: variants_of(module, kind)[:1]):
        yield


def convolutions(name: str, scratch: Path) -> list[ModelFunction]:
    every = heaviest(name, scratch / "model")
    return [f for f in every if len(variants_of(f.workload.module, "llvm")) > 1]


def arguments(function: ModelFunction) -> tuple[int, ...]:
    """The shape of the weights and the width of the image."""
    image, weights, *_ = ms.arg_info.ArgInfo.from_prim_func(function.workload.module["main"])
    return (*(int(n) for n in weights.shape), int(image.shape[2]))


def best_of(function: ModelFunction, trials: int, seed: int, place: Path) -> tuple[float, str]:
    """Milliseconds and the form of the best candidate."""
    place.mkdir(exist_ok=True)
    search = TaskSearch(function.workload, RESOLVED.target, seed=seed)
    best, variant, tried = float("inf"), DIRECT, 0
    while tried < trials:
        candidates = search.propose(BATCH, ()).candidates
        if not candidates:
            break
        results = [measured(c, best, place) for c in candidates]
        tried += sum(candidate.origin != "default" for candidate in candidates)
        times = [each.median_ms if each.status == "ok" else float("inf") for each in results]
        if min(times) < best:
            best = min(times)
            variant = form_of(candidates[times.index(best)], search)
        search.learn(results)
    return best, variant


def form_of(candidate: Candidate, search: TaskSearch) -> str:
    template = search.space.templates.get(candidate.schedule.template)
    return template.variant.name if template else "default"


if __name__ == "__main__":
    main()
