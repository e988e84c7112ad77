"""Judges the first picks for a GPU by analysis alone, on recorded measurements of others, without a
device and without a download.

    python -m benchmarks.tuning.gpu_first_picks DIRECTORY [--first 48] [--draws 300]

DIRECTORY has logs of TVM's auto-scheduler (`*.json`, one line a candidate), each in a folder with
the name of its GPU, as https://github.com/Lurkrazy/TLCBench keeps them below
`saved_logs/1000trials` (RTX 2080 Ti), and full tables of CLBlast's matrix product (`*.json.gz`, the
file has the name of its GPU), as https://github.com/AutoTuningAssociation/benchmark_hub has them
below `currently_unused/cachefiles/KernelTuner data/gemm`. The auto-scheduler's sketch is that of
MetaSchedule: blocks, virtual threads, threads, and two levels inside, operands staged in shared
memory. Of each log only the `first` candidates of a task count, those before its cost model was
fitted. Sums of one kernel are judged: products, convolutions, depthwise ones.

64 candidates are drawn at random, again and again. The figures are means over draws of the best
time of the 64 over the best of some of them: of the analysis' first 8, of 8 at random, of the
analysis' first, of one at random. 1 is the best. `share` is how often the first 8 reach 0.9.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.gpu_analysis import (
    USUAL_SHARED_MEMORY,
    Card,
    GpuKernel,
    Operand,
    card_of,
)
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.prior import NEST_COLUMNS, Sketch, TaskExperience, columns_of

_POOL, _FIRST = 64, 8
_GOAL = 0.9
_GPUS = {"2080ti": ("sm_75", 68), "2080_ti": ("sm_75", 68), "titan": ("sm_75", 72)}
_GPUS |= {"3090": ("sm_86", 82), "3060_laptop": ("sm_86", 30)}
_SPATIAL, _REDUCED = 4, 2
"""The factors that a log has of a tile; the outermost follows from the extent."""
_EXTENT = 4096


class Tiles(NamedTuple):
    """A candidate: the tiles of its spatial and reduced axes, vector widths, steps of unrolling."""

    spatial: Sequence[Sequence[int]]
    reduced: Sequence[Sequence[int]]
    widths: Sequence[int]
    unrolled: int


class Task(NamedTuple):
    """`times` are those of the `candidates`."""

    kind: str
    gpu: str
    operands: tuple[Operand, ...]
    candidates: list[Tiles]
    times: list[float]


class Regret(NamedTuple):
    """Best time of all over the best of some, means over draws."""

    analysis: float
    share: float
    chance: float
    first: float
    one: float
    correlation: float


def main() -> None:
    options = command_line(__doc__, "directory", first=48, draws=300)
    folder = Path(options.directory)
    logs = sorted(folder.rglob("*.json"))
    tasks = [*logged_tasks(logs, options.first), *product_tables(folder)]
    groups: dict[tuple[str, str], list[Regret]] = defaultdict(list)
    for task in tasks:
        groups[task.kind, task.gpu].append(judged(task, options.draws))
    heading(
        "sums | GPU | tasks | first 8 by analysis | share | 8 at random | first by analysis | "
        "one at random | rank correlation"
    )
    for (kind, gpu), regrets in groups.items():
        _print(kind, gpu, regrets)
    logged = [each for (kind, _), some in groups.items() if kind != _TABLE for each in some]
    if logged:
        _print("all of MetaSchedule's form", "", logged)


_TABLE = "CLBlast product"


def _print(kind: str, gpu: str, regrets: Sequence[Regret]) -> None:
    means = [statistics.fmean(each) for each in zip(*regrets, strict=True)]
    row(kind, gpu, len(regrets), *(f"{mean:.2f}" for mean in means))


def judged(task: Task, draws: int) -> Regret:
    shares = np.array(scores(task))
    times = np.array(task.times)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(draws):
        drawn = rng.choice(len(times), min(_POOL, len(times)), replace=False)
        best = times[drawn].min()
        ranked = times[drawn[np.argsort(-shares[drawn], kind="stable")]]
        eight = best / ranked[:_FIRST].min()
        chance = best / times[drawn[:_FIRST]].min()
        found.append(
            (eight, float(eight >= _GOAL), chance, best / ranked[0], best / times[drawn[0]])
        )
    eight, share, chance, first, one = (float(mean) for mean in np.mean(found, axis=0))
    ranks = rank_correlation(shares.tolist(), (-times).tolist())
    return Regret(eight, share, chance, first, one, ranks)


def scores(task: Task) -> list[float]:
    """Returns the share of the peak of each candidate, as a search has it."""
    recorded = experience_of(task)
    return [row[NEST_COLUMNS] for row in columns_of(recorded)]


def experience_of(task: Task) -> TaskExperience:
    """Returns the candidates as a cost model has them, with a sketch for each step of unrolling."""
    kernel = GpuKernel(task.operands, _card(task.gpu), USUAL_SHARED_MEMORY)
    one = task.candidates[0]
    steps = [*dict.fromkeys(tiles.unrolled for tiles in task.candidates)]
    nests = (_nest(len(one.spatial), len(one.reduced), len(one.widths), step) for step in steps)
    return TaskExperience(
        name=task.kind,
        sketches=tuple(Sketch("direct", nest, kernel=kernel) for nest in nests),
        rows=tuple(
            (steps.index(tiles.unrolled), milliseconds, _decided(tiles))
            for tiles, milliseconds in zip(task.candidates, task.times, strict=True)
        ),
        device=task.gpu,
    )


def _decided(tiles: Tiles) -> DecisionValues:
    decided = (*tiles.spatial, *tiles.reduced, *((width,) for width in tiles.widths), (0,))
    return tuple(map(tuple, decided))


def _card(gpu: str) -> Card:
    return card_of(*_GPUS[gpu])


def _nest(spatial: int, reduced: int, operands: int, unrolled: int) -> LoopNest:
    tiles = spatial + reduced
    order = [(place, level) for level in range(5) for place in range(spatial)]
    order += [(place, level) for level in range(3) for place in range(spatial, tiles)]
    return LoopNest(
        tuple(order),
        unrolled_by=tiles + operands,
        unrolls=(unrolled,),
        axes=tuple((place, place) for place in range(tiles)),
        fetches=tuple((number, tiles + number) for number in range(operands)),
        widths=tuple(range(65)),
    )


# Logs of the auto-scheduler.


def logged_tasks(logs: Sequence[Path], first: int) -> Iterator[Task]:
    """Yields the tasks that these logs of a GPU have together, without candidates that failed."""
    found: dict[tuple[str, str], list[tuple[Tiles, float]]] = defaultdict(list)
    for file in logs:
        counts: dict[str, int] = defaultdict(int)
        gpu = _gpu(file)
        for line in file.read_text().splitlines() if gpu else ():
            record = json.loads(line)
            workload = record["i"][0][0]
            counts[workload] += 1
            tiles = _tiles(record["i"][1][1])
            if counts[workload] <= first and record["r"][1] == 0 and tiles is not None:
                found[workload, gpu].append((tiles, statistics.fmean(record["r"][0])))
    for (workload, gpu), rows in found.items():
        shapes = json.loads(workload)[1:]
        sizes = max({_sizes(tiles) for tiles, _ in rows}, key=[_sizes(t) for t, _ in rows].count)
        sum_of = _sums(shapes, *sizes)
        if sum_of is not None:
            kept = [(t, ms) for t, ms in rows if _sizes(t) == sizes]
            yield Task(sum_of[0], gpu, sum_of[1], [t for t, _ in kept], [ms for _, ms in kept])


def _gpu(file: Path) -> str:
    names = str(file).lower()
    return next((name for name in sorted(_GPUS, key=len, reverse=True) if name in names), "")


def _sizes(tiles: Tiles) -> tuple[int, int]:
    return len(tiles.spatial), len(tiles.reduced)


def _tiles(steps: Sequence[Any]) -> Tiles | None:
    splits = [(step[1], step[3], step[4]) for step in steps if step[0] == "SP"]
    spatial = [each for each in splits if len(each[2]) == _SPATIAL]
    if not spatial:
        return None
    stage = spatial[0][0]
    reduced = [each for each in splits if each[0] == stage and len(each[2]) == _REDUCED]
    # The last operand is staged first.
    widths = [factors[0] for _, _, factors in splits if len(factors) == 1][::-1]
    unrolled = [step[3] for step in steps if step[0] == "PR" and "unroll" in step[3]]
    return Tiles(
        [_whole(*each[1:]) for each in spatial],
        [_whole(*each[1:]) for each in reduced],
        ([*widths, 1, 1])[:2],
        int(unrolled[-1].split("$")[1]) if unrolled else 0,
    )


def _whole(extent: int, factors: Sequence[int]) -> list[int]:
    return [extent // math.prod(factors), *factors]


def _sums(
    shapes: Sequence[Sequence[int]], spatial: int, reduced: int
) -> tuple[str, tuple[Operand, ...]] | None:
    """Returns the kind of a sum and what it reads, None for those of several kernels."""

    def operand(*dimensions: Sequence[tuple[int, int]]) -> Operand:
        return Operand(4, tuple(map(tuple, dimensions)))

    match spatial, reduced:
        case 2, 1:
            return "product", (operand([(0, 1)], [(2, 1)]), operand([(1, 1)], [(2, 1)]))
        case 3, 1:
            left = operand([(0, 1)], [(1, 1)], [(3, 1)])
            return "batched product", (left, operand([(0, 1)], [(2, 1)], [(3, 1)]))
        case 4, (2 | 3):
            stride = -(-shapes[0][1] // shapes[-1][1])
            channel = (6, 1) if reduced == 3 else (3, 1)
            image = operand([(0, 1)], [(1, stride), (4, 1)], [(2, stride), (5, 1)], [channel])
            if reduced == 2:
                return "depthwise convolution", (image, operand([(4, 1)], [(5, 1)], [channel]))
            weights = operand([(4, 1)], [(5, 1)], [channel], [(3, 1)])
            is_window = shapes[1][0] > 1
            return "convolution" if is_window else "pointwise convolution", (image, weights)
        case _:
            return None


# Tables of CLBlast's product: columns of the left operand and of the result are contiguous.


def product_tables(folder: Path) -> Iterator[Task]:
    """Yields the products of 4096 x 4096 matrices whose operands are both staged."""
    for file in sorted(folder.rglob("*.json.gz")):
        gpu = _gpu(file)
        table = json.loads(gzip.decompress(file.read_bytes())) if gpu else {"cache": {}}
        kept = [
            each
            for each in table["cache"].values()
            if each.get("SA") and each.get("SB") and isinstance(each["time"], float)
        ]
        if kept:
            operands = (
                Operand(4, (((2, 1),), ((0, 1),))),
                Operand(4, (((2, 1),), ((1, 1),))),
            )
            times = [each["time"] for each in kept]
            yield Task(_TABLE, gpu, operands, [_of_table(each) for each in kept], times)


def _of_table(each: Mapping[str, int]) -> Tiles:
    spatial = [
        [_EXTENT // each[tile], 1, each[threads], 1, each[tile] // each[threads]]
        for tile, threads in (("MWG", "MDIMC"), ("NWG", "NDIMC"))
    ]
    reduced = [[_EXTENT // each["KWG"], each["KWG"] // each["KWI"], each["KWI"]]]
    return Tiles(spatial, reduced, [each["VWM"], each["VWN"]], 512)


if __name__ == "__main__":
    main()
