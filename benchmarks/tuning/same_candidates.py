"""One list of candidates built and measured by stock's builder and runner, and by ours.

    python -m benchmarks.tuning.same_candidates [squeezenet] [--candidates 200]
        [--repeats 3]

Stock takes them by 64, as `tune_tasks` does: all of a batch are built, then all are run, one
after the other. Ours has workers that live on and run what they have built, one at a time on the
device while the others build. The first two rows of ours measure as long as stock does; the last
cuts losers short, as a run of the product does. In the end the best eight of each side are
measured in turn by one process, three times: what a side would have chosen is judged by that.
Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import tvm
from tvm.s_tir import meta_schedule as ms

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import one_thread
from benchmarks.kit.tables import row
from benchmarks.latency.stock_model import one_thread_runner, patient_builder
from benchmarks.tuning.parallel_measurement import (
    RANKED,
    Slots,
    by_task,
    candidates,
    ranked,
    regret,
    tau,
)
from tunegate.compiler.layouts.packing import split_kernel
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.tune import candidate_requests as measuring
from tunegate.tune.protocol import Measure
from tunegate.tune.workers import spawn_pool

STOCK_BATCH = 64
STOCK_MS = 100
"""`EvaluatorConfig()` repeats a candidate for so long, once."""
Times = dict[int, float]
"""Milliseconds of the candidates that ran."""
Side = tuple[float, Times]
"""The seconds of all candidates, and their times."""


def main() -> None:
    options = command_line(__doc__, "model=squeezenet", candidates=200, repeats=3)
    one_thread()
    cores = len(os.sched_getaffinity(0))
    with scratch_folder() as scratch:
        requests = candidates(options.model, options.candidates, scratch)
        sides: dict[str, Callable[[Mapping[int, Measure]], Side]] = {
            "stock": stock,
            "ours, one worker": partial(ours, workers=1),
            f"ours, {cores} workers": partial(ours, workers=cores),
            "the same, losers cut short": partial(ours, workers=cores, cuts=True),
        }
        rows = [
            {name: noted(name, side(requests)) for name, side in sides.items()}
            for _ in range(options.repeats)
        ]
        show(requests, rows)


def stock(requests: Mapping[int, Measure]) -> Side:
    builder = patient_builder()
    runner = one_thread_runner()
    found: Times = {}
    started = time.monotonic()
    numbers = list(requests)
    for first in range(0, len(numbers), STOCK_BATCH):
        batch = numbers[first : first + STOCK_BATCH]
        found.update(stock_batch(builder, runner, {n: requests[n] for n in batch}))
    return time.monotonic() - started, found


def stock_batch(builder: Any, runner: Any, batch: Mapping[int, Measure]) -> Times:
    modules = {
        n: split_kernel(tvm.ir.load_json(one.candidate.module)).module for n, one in batch.items()
    }
    inputs = [
        ms.builder.BuilderInput(modules[n], tvm.target.Target(json.loads(one.target_json)))
        for n, one in batch.items()
    ]
    built = {
        n: result.artifact_path
        for n, result in zip(batch, builder.build(inputs), strict=True)
        if result.artifact_path is not None
    }
    runs = [
        ms.runner.RunnerInput(path, "cpu", ms.arg_info.ArgInfo.from_prim_func(modules[n]["main"]))
        for n, path in built.items()
    ]
    results = [future.result() for future in runner.run(runs)]
    return {
        n: statistics.fmean(float(seconds) for seconds in result.run_secs) * 1e3
        for n, result in zip(built, results, strict=True)
        if result.run_secs
    }


def ours(requests: Mapping[int, Measure], *, workers: int, cuts: bool = False) -> Side:
    waiting = list(requests.values())
    found: Times = {}
    best: dict[str, float] = {}
    with scratch_folder() as directory:
        started = time.monotonic()
        pool = spawn_pool(
            workers, PROGRAMS.worker, threads=1, kind="llvm", gpus=(), directory=directory
        )
        while waiting or pool.pending:
            if waiting and not pool.waiting:
                pool.add([timed_as(waiting.pop(0), best, cuts)])
            pool.dispatch()
            for request, measured in pool.collect():
                if measured.status == "ok":
                    took = found[measured.number] = measured.median_ms
                    workload = request.candidate.workload
                    best[workload] = min(took, best.get(workload, took))
            time.sleep(0.002)
        seconds = time.monotonic() - started
        pool.close()
    return seconds, found


def timed_as(request: Measure, best: Mapping[str, float], cuts: bool) -> Measure:
    """The request with as many repeats as stock's, or with the
    product's, which knows the best so far."""
    if not cuts:
        return msgspec.structs.replace(request, repeats=1, repeat_ms=STOCK_MS)
    limit_ms = measuring._LOSER_FACTOR * best.get(request.candidate.workload, float("inf"))
    return msgspec.structs.replace(request, loser_ms=limit_ms)


def noted(name: str, side: Side) -> Side:
    print(f"{name}: {side[0]:.1f} s, {len(side[1])} ran", flush=True)
    assert side[1], "no candidate ran: there is nothing to compare"
    return side


def show(requests: Mapping[int, Measure], rows: list[dict[str, Side]]) -> None:
    print(f"{len(requests)} candidates | seconds | saved | tau with stock | slower than the best")
    print("|---|--:|--:|--:|--:|")
    slower = [slower_than_best(requests, row) for row in rows]
    for name in rows[0]:
        seconds = statistics.median(row[name][0] for row in rows)
        saved = statistics.median(1 - row[name][0] / row["stock"][0] for row in rows)
        agreed = statistics.median(agreement(requests, row["stock"], row[name]) for row in rows)
        worst = " ".join(f"{max(each[name]):.1%}" for each in slower)
        row(name, f"{seconds:.0f}", f"{saved:.0%}", f"{agreed:.3f}", worst)


def agreement(requests: Mapping[int, Measure], one: Side, other: Side) -> float:
    """The mean of the tasks, of what ran on both sides."""
    tasks = by_task(requests).values()
    both = [[n for n in numbers if n in one[1] and n in other[1]] for numbers in tasks]
    return statistics.fmean(tau(one[1], other[1], numbers) for numbers in both)


def slower_than_best(
    requests: Mapping[int, Measure], row: Mapping[str, Side]
) -> dict[str, list[float]]:
    """Returns the slowdown of each side's choice after its rank pass against the best, by task."""
    tasks = by_task(requests)
    every = {
        name: dict.fromkeys(requests, float("inf")) | times for name, (_, times) in row.items()
    }
    best = {
        n
        for times in every.values()
        for numbers in tasks.values()
        for n in sorted(numbers, key=times.__getitem__)[:RANKED]
    }
    with Slots({n: requests[n] for n in sorted(best)}, 1) as slots:
        slots.warm_up(sorted(best))
        truth = dict.fromkeys(requests, float("inf")) | {
            n: statistics.median(slots.alone(n).median_ms for _ in range(5)) for n in sorted(best)
        }
        winners = {name: ranked(slots, requests, times) for name, times in every.items()}
    return {name: regret(truth, tasks, chosen) for name, chosen in winners.items()}


if __name__ == "__main__":
    main()
