"""Compares predictors of the gain of a task's next batch: the basis of
tunegate/tune/improvement.py.

    python -m benchmarks.tuning.next_batch squeezenet transformer-128 resnet50
        [--seconds 240]

All tasks of each model are tuned in turn, 3 candidates and then 8 at a time, whatever they gain.
Of every batch k = ln(best before / best after) / ln(candidates after / before) is compared with
how far the task was behind the best rate of any task, and with the k of its batch before. Prints
the table of docs/benchmarks.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import tasks_of, tuned
from benchmarks.kit.tables import heading, row
from benchmarks.kit.turns import next_in_turn
from tunegate.tune import tuning_run
from tunegate.tune.improvement import TaskState
from tunegate.tune.next_task import Choice, Work, roofline_gaps
from tunegate_cache.format.records import Miss

FIRST, LATER = 3, 8
MIN_FLOPS = 1e6
MIN_TO_FIT = 10
GAPS = (0.0, 0.2, 0.5, 0.8, 1.2, 1.8, math.inf)
COUNTS = (0, FIRST + 1, FIRST + LATER + 1, FIRST + 3 * LATER + 1, math.inf)


class Step(NamedTuple):
    """One batch: the candidates of its task before it, how far the task was behind, the exponent
    before (None for the first) and its own."""

    candidates: int
    gap: float
    before: float | None
    exponent: float


class Curve(NamedTuple):
    """The curve of one task: the best time after each candidate, infinite while nothing has run."""

    flops: float
    bytes_moved: float
    best_ms: Sequence[float]


def main() -> None:
    options = command_line(__doc__, "models...", seconds=240.0)
    steps: list[Step] = []
    for name in options.models:
        with scratch_folder() as scratch:
            found = list(steps_of(curves(name, options.seconds, scratch)))
        print(f"{name}: {len(found)} batches", flush=True)
        steps += found
    show(steps)


def small_then_usual(states: Sequence[TaskState], *_: object) -> Choice | None:
    index = next_in_turn(states)
    return None if index is None else Choice(index, LATER if states[index].history else FIRST)


def curves(name: str, seconds: float, scratch: Path) -> list[Curve]:
    model = saved(name, scratch)
    tasks = tasks_of(model, TARGET, scratch)
    answers = dict.fromkeys((task.key for task in tasks), Miss("absent"))
    with patch.object(tuning_run, "choose", small_then_usual):
        outcomes = tuned(model, TARGET, tasks, answers, seconds, lambda _: True, scratch)
    found = []
    for task in tasks:
        looks = [c for c in outcomes[task.key].costs if c.stage == "quick"]
        times = [c.milliseconds or math.inf for c in looks if c.origin != "default"]
        best = np.minimum.accumulate(times).tolist() if times else []
        found.append(Curve(task.flops, task.bytes_moved, best))
    return found


def steps_of(every: Sequence[Curve]) -> Iterator[Step]:
    most = max(len(curve.best_ms) for curve in every)
    ends = range(FIRST, most + 1, LATER)
    last: dict[int, float] = {}
    for before, after in pairwise(ends):
        gaps = roofline_gaps([Work(c.flops, c.bytes_moved, at(c, before)) for c in every])
        for index, curve in enumerate(every):
            old, new = at(curve, before), at(curve, after)
            if curve.flops < MIN_FLOPS or old is None or new is None:
                continue
            exponent = math.log(old / new) / math.log(after / before)
            yield Step(before, gaps[index], last.get(index), exponent)
            last[index] = exponent


def at(curve: Curve, candidates: int) -> float | None:
    if len(curve.best_ms) < candidates or math.isinf(curve.best_ms[candidates - 1]):
        return None
    return curve.best_ms[candidates - 1]


def show(steps: Sequence[Step]) -> None:
    table("behind the best rate, ln", GAPS, [(step.gap, step.exponent) for step in steps])
    table("candidates before", COUNTS, [(step.candidates, step.exponent) for step in steps])
    known = [step for step in steps if step.before is not None]
    if len(known) < MIN_TO_FIT:
        print(f"{len(known)} batches after a first one: too few to fit; give it more --seconds")
        return
    columns = np.array([[1.0, step.gap, step.before] for step in known])
    fitted, *_ = np.linalg.lstsq(columns, np.array([s.exponent for s in known]), rcond=None)
    print(
        f"least squares of {len(known)} batches: "
        f"k = {fitted[0]:.2f} + {fitted[1]:.2f} behind + {fitted[2]:.2f} k before"
    )


def table(what: str, edges: Sequence[float], found: Sequence[tuple[float, float]]) -> None:
    heading(f"{what} | batches | mean k")
    for low, high in pairwise(edges):
        inside = [exponent for value, exponent in found if low <= value < high]
        if inside:
            row(f"{low:g} to {high:g}", len(inside), f"{statistics.fmean(inside):.2f}")


if __name__ == "__main__":
    main()
