"""Cold tuning of three tasks of a model: ours beside stock's evolution and
stock's random search, in one run.

    python -m benchmarks.tuning.cold_tuning [squeezenet] [--trials 64]
        [--repeats 3]

All tune the same three tasks with the same number of trials in all, one after the other,
`repeats` times in turn; then ours once more for as many seconds as stock's evolution took. The
best schedules of all are timed again in turn by this process on one thread, so that none is
judged by its own clock; what is compared is what both schedulers minimize, the sum of calls x
time. Of a model other than light_squeezenet the three tasks with the most work are taken. Prints
the table of docs/benchmarks.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tvm
from tvm.driver import build
from tvm.s_tir import meta_schedule as ms

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import one_thread, saved
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading, row
from benchmarks.latency.stock_model import one_thread_runner, patient_builder
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.layouts.packing import split_kernel
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.tune.protocol import Schedule

TARGET = TargetConfig(name="cpu", layout="nchw", threads=1)
"""The same tasks for all: stock does not know how to turn a layout."""
MODEL = "m.onnx"
FLOPS_OF_THE_THREE = (53934336.0, 11097216.0, 49926656.0)
"""The operations of three tasks of light_squeezenet: a 3x3 expand convolution at 27x27, a 1x1
squeeze and a 3x3 expand at 13x13."""
STRATEGIES = {"stock": "evolutionary", "random": "replay-trace"}
LONGER = "ours, stock's seconds"
PASSES = 3
Best = dict[str, Any]
"""The scheduled module of each task, by its workload."""


class Row(msgspec.Struct, frozen=True):
    seconds: float
    sum_ms: float
    """Calls x time, of the three tasks."""


def main() -> None:
    options = command_line(__doc__, "model=squeezenet", trials=64, repeats=3)
    one_thread()
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        rounds = [
            one_round(model, scratch / str(number), options.trials)
            for number in range(options.repeats)
        ]
        show_table(rounds, options.model, options.trials)


def one_round(model: Path, place: Path, trials: int) -> dict[str, Row]:
    seconds, best = {}, {}
    seconds["ours"], best["ours"] = tune_ours(model, place / "ours", trials)
    for name, strategy in STRATEGIES.items():
        seconds[name], best[name] = tune_stock(model, place / name, trials, strategy)
    seconds[LONGER], best[LONGER] = tune_ours(
        model, place / "longer", None, seconds=seconds["stock"]
    )
    functions, target = open_model(model, place)
    milliseconds = timed_in_turn(best, target)
    rows = {}
    for name in best:
        times = tuple(milliseconds[name][key] for key in functions)
        pairs = zip(functions.values(), times, strict=True)
        rows[name] = Row(seconds[name], sum(f.weight * ms for f, ms in pairs))
        shown = ", ".join(f"{ms:.3f}" for ms in times)
        print(f"{name}: {seconds[name]:.1f} s; {shown} ms; {rows[name].sum_ms:.2f}", flush=True)
    return rows


def timed_in_turn(best: dict[str, Best], target: Any) -> dict[str, dict[str, float]]:
    """Milliseconds, so that a slow moment of the machine is nobody's."""
    passes: list[dict[str, dict[str, float]]] = [
        {
            name: {key: timed(module, target) for key, module in its.items()}
            for name, its in best.items()
        }
        for _ in range(PASSES)
    ]
    return {
        name: {key: statistics.median(p[name][key] for p in passes) for key in its}
        for name, its in best.items()
    }


def is_chosen(flops: float, every: list[float]) -> bool:
    three = [f for f in every if f in FLOPS_OF_THE_THREE] or sorted(every)[-3:]
    return flops in three


def tune_ours(
    model: Path, scratch: Path, trials: int | None, *, seconds: float | None = None
) -> tuple[float, Best]:
    tasks = tasks_of(model, TARGET, scratch)
    every = [task.flops for task in tasks]
    chosen = [task for task in tasks if is_chosen(task.flops, every)]
    budget = Budget(
        seconds=seconds,
        trials=None if trials is None else trials * len(chosen),
        min_gain_percent_per_minute=0.0,
    )
    shard = shard_of(chosen, TARGET, budget)
    tuner = tuner_of(TARGET, scratch)
    started = time.monotonic()
    outcomes = {
        o.key.workload: o
        for o in tuner.tune(shard, {(MODEL, "head"): ShapedModel(model, {})}, lambda _: True)
    }
    spent = time.monotonic() - started
    functions, target = open_model(model, scratch)
    best = {}
    for key, outcome in outcomes.items():
        record, workload = outcome.records[0], functions[key].workload
        schedule = DesignSpace(workload, target).replay(Schedule(record.template, record.decisions))
        best[key] = schedule.mod if schedule else workload.module
    return spent, best


def tune_stock(model: Path, scratch: Path, trials: int, strategy: str) -> tuple[float, Best]:
    functions, target = open_model(model, scratch)
    contexts = [context(f.workload.module, target, strategy).clone() for f in functions.values()]
    work_dir = scratch / "stock"
    work_dir.mkdir(parents=True)
    started = time.monotonic()
    database = ms.tune_tasks(
        tasks=contexts,
        task_weights=[float(f.weight) for f in functions.values()],
        work_dir=str(work_dir),
        max_trials_global=trials * len(contexts),
        max_trials_per_task=trials,
        builder=patient_builder(),
        runner=one_thread_runner(),
    )
    seconds = time.monotonic() - started
    found = {
        key: database.query_schedule(f.workload.module, target, "main")
        for key, f in functions.items()
    }
    return seconds, {key: schedule.mod for key, schedule in found.items()}


def open_model(model: Path, scratch: Path) -> tuple[dict[str, ModelFunction], Any]:
    """The three, by their workloads, and the target."""
    target = tvm_target(TARGET).target
    prepared = prepare(model, shapes={}, into=scratch / "opened", path=MODEL)
    functions = functions_of(import_in_layout(prepared, target, MODEL, ("nchw",)))
    every = [f.flops for f in functions]
    chosen = [f for f in functions if is_chosen(f.flops, every)]
    return {f.workload.digest: f for f in chosen}, target


def context(module: Any, target: Any, strategy: str) -> Any:
    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator="post-order-apply",
        search_strategy=strategy,
        num_threads=2,
        rand_state=1,
    )


def timed(module: Any, target: Any) -> float:
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


def show_table(rounds: list[dict[str, Row]], model: str, trials: int) -> None:
    """Medians of the ratios to ours, so that a slow hour of the machine is in both."""
    heading(f"{model}, 3 tasks x {trials} trials | seconds | of ours | calls x time, of ours")
    for name in rounds[0]:
        seconds = statistics.median(row[name].seconds for row in rounds)
        times = statistics.median(row[name].seconds / row["ours"].seconds for row in rounds)
        latency = statistics.median(row[name].sum_ms / row["ours"].sum_ms for row in rounds)
        row(name, f"{seconds:.0f}", f"{times:.1f}", f"{latency:.2f}")


if __name__ == "__main__":
    main()
