"""Convolutions with images of packed channels (NCHWc) beside channels
last: is it worth a third form?

    python -m benchmarks.kernels.packed_channels squeezenet [--trials 32]
        [--seeds 1 2] [--tasks 8]

The packed function takes its image as blocks of 16 channels and gives its output so; nobody pays
for packing it. The weights are laid out along the loops of each schedule in both. The same search,
from nothing, one thread. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tvm.s_tir import Schedule
from tvm.tirx import IndexMap

from benchmarks.cost_models.prior_knowledge import best_after
from benchmarks.kernels.convolution_forms import arguments
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import RESOLVED, heaviest
from benchmarks.kit.models import one_thread
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import _convolution, variants_of
from tunegate.compiler.search import space
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.tune.prior import prior_of

BLOCK = 16
IMAGE, CONVOLUTION = 4, 7
"""Loops of a block that goes over an image, and of a convolution."""


def main() -> None:
    options = command_line(__doc__, "model", trials=32, seeds=[1, 2], tasks=8)
    one_thread()
    load_intrinsics("llvm")
    heading("weights, width | times | channels last, ms | packed, ms | ratio")
    sums = [0.0, 0.0]
    # Unfolded images would be another comparison.
    direct = patch.object(space, "variants_of", lambda module, kind: variants_of(module, kind)[:1])
    with scratch_folder() as folder, direct:
        for function, other in pairs(options.model, options.tasks, folder):
            last, blocks = (
                statistics.median(best_ms(w, s, options.trials) for s in options.seeds)
                for w in (function.workload, other)
            )
            sums[0] += function.weight * last
            sums[1] += function.weight * blocks
            shape = "x".join(str(n) for n in arguments(function))
            told = f"{last:.3f} | {blocks:.3f} | {blocks / last:.2f} |"
            print(f"| {shape} | {function.weight} | {told}", flush=True)
    row("all", "", f"{sums[0]:.2f}", f"{sums[1]:.2f}", f"{sums[1] / sums[0]:.2f}")


def pairs(name: str, tasks: int, scratch: Path) -> list[tuple[ModelFunction, Workload]]:
    """The convolutions that compute most and whose channels are whole
    blocks, as they are and packed."""
    every = heaviest(name, scratch / "model")
    found = [(function, packed(function.workload)) for function in every]
    return [(function, other) for function, other in found if other is not None][:tasks]


def packed(workload: Workload) -> Workload | None:
    schedule = Schedule(workload.module)
    found = _convolution(schedule)
    if found is None or found.extents[3] % BLOCK or found.extents[6] % BLOCK:
        return None

    def image(n: Any, h: Any, w: Any, c: Any) -> tuple[Any, ...]:
        return n, c // BLOCK, h, w, c % BLOCK

    def loops(n: Any, h: Any, w: Any, c: Any, y: Any, x: Any, i: Any) -> tuple[Any, ...]:
        return n, c // BLOCK, h, w, c % BLOCK, i // BLOCK, y, x, i % BLOCK

    images = IndexMap.from_func(image, ndim=IMAGE, index_dtype=found.loop_type)
    products = IndexMap.from_func(loops, ndim=CONVOLUTION, index_dtype=found.loop_type)
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        is_image = len(schedule.get(block).iter_vars) == IMAGE
        for place, read in enumerate(schedule.get(block).reads):
            source, is_first = read.source, place == 0
            is_argument = any(source.same_as(a) for a in schedule.mod["main"].params)
            if is_first and is_argument and len(source.shape) == IMAGE:
                schedule.transform_layout(block, ("read", place), images)
        schedule.transform_layout(block, ("write", 0), images)
        schedule.transform_block_layout(block, images if is_image else products)
    return canonical_workload(schedule.mod["main"])


def best_ms(workload: Workload, seed: int, trials: int) -> float:
    search = TaskSearch(workload, RESOLVED.target, seed=seed, prior=prior_of("llvm"))
    with scratch_folder() as place:
        return best_after(search, trials, place, RESOLVED)[-1]


if __name__ == "__main__":
    main()
