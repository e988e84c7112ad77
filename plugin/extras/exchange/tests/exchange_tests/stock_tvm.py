"""Plain TVM, in a process of its own: writes a stock database of random schedules of a model, with
times made up. Run as `python stock_tvm.py MODEL DIRECTORY`."""

import sys
import types
import warnings
from typing import Any

warnings.simplefilter("ignore")

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

MANY = 8


def main(model: str, directory: str) -> None:
    # Parsing the intrinsics of every target takes fifteen seconds, and a Haswell has none of them.
    sys.modules["tvm.s_tir.tensor_intrin"] = types.ModuleType("tensor_intrin")
    target = tvm.target.Target({"kind": "llvm", "num-cores": 7, "mcpu": "haswell"})
    with target:
        module = relax.get_pipeline("zero")(from_onnx(onnx.load(model)))
        tasks = ms.relax_integration.extract_tasks(module, target)
    database = ms.database.JSONDatabase(work_dir=directory)
    for task in tasks:
        fill(database, task.dispatched[0], target)


def fill(database: Any, module: Any, target: Any) -> None:
    context = ms.TuneContext(
        mod=module,
        target=target,
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(population_size=32),
        num_threads=1,
        rand_state=3,
    )
    context.pre_tuning(
        max_trials=MANY,
        num_trials_per_iter=MANY,
        design_spaces=context.generate_design_space(),
        database=database,
        cost_model=ms.cost_model.RandomModel(seed=1),
    )
    workload = database.commit_workload(module)
    for candidate in context.generate_measure_candidates() or ():
        record = ms.database.TuningRecord(
            candidate.sch.trace, workload, [1e-6], target, candidate.args_info
        )
        database.commit_tuning_record(record)


if __name__ == "__main__":
    main(*sys.argv[1:])
