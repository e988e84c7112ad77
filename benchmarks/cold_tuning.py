"""Cold tuning of three convolutions of light_squeezenet: ours beside stock, in one run.

    python benchmarks/cold_tuning.py [--trials 64] [--repeats 3]

Both tune the same three tasks with the same number of trials each, one after the other, `repeats`
times in turn. The best schedule of each side is then timed again by one and the same worker, so
that neither is judged by its own clock. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import tvm
from tvm.driver import build
from tvm.s_tir import meta_schedule as ms

from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import TargetConfig
from tunegate.edges.light_models import seeded_light
from tunegate.edges.metaschedule.compiler import MetaScheduleCompiler
from tunegate.edges.metaschedule.functions import functions_of
from tunegate.edges.metaschedule.import_onnx import import_model
from tunegate.edges.metaschedule.messages import Schedule
from tunegate.edges.metaschedule.prepacking import split_kernel
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.metaschedule.tuner import MetaScheduleTuner
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.onnx_prepare import prepare
from tunegate.ports import ModelJob
from tunegate_cache.records import DeviceFingerprint, Miss, Provenance

TARGET = TargetConfig(name="cpu", layout="nchw")
"""The same tasks for both: stock does not know how to turn a layout."""
DEVICE = DeviceFingerprint(name="here", kind="cpu", units=2, memory_bytes=0)
MODEL = "light_squeezenet.onnx"
FLOPS_OF_THE_THREE = (53934336.0, 11097216.0, 49926656.0)
"""A 3x3 expand convolution at 27x27, a 1x1 squeeze and a 3x3 expand at 13x13."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / MODEL
        onnx.save(seeded_light("squeezenet", seed=0), model)
        rows = []
        for number in range(options.repeats):
            ours = tune_ours(model, Path(scratch) / f"ours-{number}", options.trials)
            stock = tune_stock(model, Path(scratch) / f"stock-{number}", options.trials)
            rows.append((ours, stock))
            show_row(number, ours, stock)
        show_table(rows, options.trials)


def tune_ours(model: Path, scratch: Path, trials: int) -> tuple[float, dict[str, float]]:
    compiler = MetaScheduleCompiler(scratch / "compiler")
    (tasks,) = compiler.tasks([ModelJob(file=model, path=MODEL, shapes={}, target=TARGET)])
    chosen = [task for task in tasks if task.flops in FLOPS_OF_THE_THREE]
    planned = tuple(
        PlannedTask(resolved=ResolvedTask(task, Miss("absent")), trials=trials, gain_ms=1.0)
        for task in chosen
    )
    shard = Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=planned,
        budget=Budget(seconds=None, trials=trials * len(chosen)),
        predicted_seconds=0.0,
    )
    tuner = MetaScheduleTuner(
        targets={"cpu": TARGET},
        shapes={MODEL: {}},
        device=DEVICE,
        toolchain=toolchain(),
        source=Provenance(),
        clock=time,
        scratch=scratch,
    )
    started = time.monotonic()
    outcomes = {
        o.key.workload: o for o in tuner.tune(shard, {(MODEL, "head"): model}, lambda _: True)
    }
    seconds = time.monotonic() - started
    workloads, target = opened(model, scratch)
    best = {}
    for key, outcome in outcomes.items():
        record = outcome.records[0]
        space = DesignSpace(workloads[key], target)
        best[key] = timed(space.replay(Schedule(record.template, record.decisions)).mod, target)
    return seconds, best


def tune_stock(model: Path, scratch: Path, trials: int) -> tuple[float, dict[str, float]]:
    workloads, target = opened(model, scratch)
    contexts = [
        context(workload.module, target, "evolutionary").clone() for workload in workloads.values()
    ]
    work_dir = scratch / "stock"
    work_dir.mkdir(parents=True)
    started = time.monotonic()
    database = ms.tune_tasks(
        tasks=contexts,
        task_weights=[1.0] * len(contexts),
        work_dir=str(work_dir),
        max_trials_global=trials * len(contexts),
        max_trials_per_task=trials,
    )
    seconds = time.monotonic() - started
    best = {}
    for key, workload in workloads.items():
        schedule = database.query_schedule(workload.module, target, "main")
        best[key] = timed(schedule.mod, target)
    return seconds, best


def opened(model: Path, scratch: Path) -> tuple[dict, object]:
    target = tvm_target(TARGET).target
    prepared = prepare(model, shapes={}, into=scratch / "opened", path=MODEL)
    functions = functions_of(import_model(prepared, target, MODEL))
    chosen = [f for f in functions if f.flops in FLOPS_OF_THE_THREE]
    return {f.workload.digest: f.workload for f in chosen}, target


def context(module, target, strategy="replay-trace"):
    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator="post-order-apply",
        search_strategy=strategy,
        num_threads=2,
        rand_state=1,
    )


def timed(module, target) -> float:
    """Milliseconds, median of nine, with constants packed as a build has them."""
    module = split_kernel(module).module
    function = build(module, target=target)
    random = np.random.default_rng(0)
    arguments = [
        tvm.runtime.tensor(random.standard_normal([int(n) for n in a.shape]).astype(str(a.dtype)))
        for a in ms.arg_info.ArgInfo.from_prim_func(module["main"])
    ]
    evaluator = function.time_evaluator("main", tvm.cpu(), number=1, repeat=9, min_repeat_ms=50)
    return float(np.median(evaluator(*arguments).results)) * 1e3


def show_row(number: int, ours, stock) -> None:
    times = "  ".join(f"{ours[1][k]:.3f}/{stock[1][k]:.3f}" for k in sorted(stock[1]))
    print(
        f"run {number}: ours {ours[0]:.1f} s, stock {stock[0]:.1f} s; ms ours/stock {times}",
        flush=True,
    )


def show_table(rows, trials: int) -> None:
    speedup = statistics.median(stock[0] / ours[0] for ours, stock in rows)
    latency = statistics.median(
        float(np.exp(np.mean([np.log(ours[1][k] / stock[1][k]) for k in stock[1]])))
        for ours, stock in rows
    )
    print(f"| {trials} trials x 3 tasks | ours | stock tune_tasks | ratio |")
    print("|---|---|---|---|")
    ours_s = statistics.median(ours[0] for ours, _ in rows)
    stock_s = statistics.median(stock[0] for _, stock in rows)
    print(
        f"| seconds (median of {len(rows)}) | {ours_s:.1f} | {stock_s:.1f} | {speedup:.2f}x faster |"
    )
    print(f"| latency (geometric mean over tasks) | | | {latency:.3f} of stock's |")


if __name__ == "__main__":
    main()
