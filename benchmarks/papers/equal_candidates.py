"""DOPpler (Borowiec et al., IEEE TPDS 2023): tuning time at the same candidates, and the control
law of the degree by itself."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.papers.headline import Figure
from benchmarks.tuning.parallel_measurement import (
    Slots,
    by_task,
    candidates,
    in_parallel,
    one_by_one,
    tau,
)
from benchmarks.tuning.same_candidates import ours, slower_than_best, stock

MODEL = "squeezenet"
CANDIDATES = 24
SLOTS = 2


def figures(scratch: Path) -> Iterator[Figure]:
    requests = candidates(MODEL, CANDIDATES, scratch)
    cores = len(os.sched_getaffinity(0))
    sides = {"stock": stock(requests), "ours": ours(requests, workers=cores)}
    saved = 1 - sides["ours"][0] / sides["stock"][0]
    slower = slower_than_best(requests, sides)
    on = f"{len(requests)} candidates of {MODEL}"
    yield Figure(
        "tuning-time",
        f"{saved:.0%}, {max(slower['ours']):.1%} (stock's choice {max(slower['stock']):.1%})",
        f"{on}, {cores} workers against LocalBuilder and LocalRunner",
    )
    numbers = list(requests)
    with Slots(requests, SLOTS) as slots:
        slots.warm_up(numbers)
        alone, before = one_by_one(slots, numbers)
        beside = in_parallel(slots, numbers)
        again, after = one_by_one(slots, numbers)
    tasks = by_task(requests).values()
    taus = [statistics.fmean(tau(alone, each, its) for its in tasks) for each in (beside[0], again)]
    share = 1 - beside.seconds / ((before + after) / 2)
    yield Figure(
        "measured-beside",
        f"{share:.0%}, tau {taus[0]:.2f} (alone a second time {taus[1]:.2f})",
        f"{on}, {SLOTS} slots",
    )
