"""Convolutions with a window tuned with their direct form alone, and
with the matrix product beside it.

    PYTHONPATH=.:benchmarks python benchmarks/convolution_forms.py squeezenet [--trials 48]
        [--seeds 1 2 3]

Every convolution of the model that has both forms gets the same number of candidates of our search,
one thread. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

os.environ["TVM_NUM_THREADS"] = "1"

from in_process import RESOLVED, imported, measured
from stock_model import named_model
from tvm.s_tir import meta_schedule as ms

from tunegate.edges.metaschedule import space
from tunegate.edges.metaschedule.algorithm_variants import DIRECT, variants_of
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.search import TaskSearch
from tunegate.engine.protocol import Candidate

BATCH = 8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    load_intrinsics("llvm")
    print("| convolution | times | direct, ms | both, ms | ratio | the best is |")
    print("|---|--:|--:|--:|--:|---|")
    sums = [0.0, 0.0]
    with tempfile.TemporaryDirectory() as folder:
        for number, function in enumerate(convolutions(options.model, Path(folder))):
            place = Path(folder) / str(number)
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
    print(f"| all | | {sums[0]:.2f} | {sums[1]:.2f} | {sums[1] / sums[0]:.2f} | |")


@contextmanager
def only_direct() -> Iterator[None]:
    with patch.object(space, "variants_of", lambda module, kind: variants_of(module, kind)[:1]):
        yield


def convolutions(name: str, scratch: Path) -> list[ModelFunction]:
    found = {f.workload.digest: f for f in imported(named_model(name), scratch / "model")}
    return [f for f in found.values() if len(variants_of(f.workload.module, "llvm")) > 1]


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
