"""End-to-end latency of a model after minutes of tuning: ours, stock's, and ONNX Runtime's.

    PYTHONPATH=. python benchmarks/quality.py squeezenet [--ours 1 5] [--stock 5 15]

Ours tunes anew for each number of minutes; stock (`tune_relax` on the same prepared ONNX file, for the
same target and threads) tunes once, and its database is looked at after each. All builds are then
timed by the same code in fresh processes, in turn. Prints the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import msgspec
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

from tunegate.artifacts.plans import Budget, PlannedTask, Shard
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import TargetConfig
from tunegate.edges.artifact_file import ArtifactFile
from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.light_models import seeded_light
from tunegate.edges.metaschedule.compiler import MetaScheduleCompiler
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.metaschedule.tuner import MetaScheduleTuner
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.onnx_prepare import prepare
from tunegate.ports import BuildJob, ModelJob
from tunegate_cache.records import DeviceFingerprint, Miss, Provenance

THREADS = 1
TARGET = TargetConfig(name="cpu", threads=THREADS)
DEVICE = DeviceFingerprint(name="here", kind="cpu", units=2, memory_bytes=0)
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--ours", type=float, nargs="+", default=[1, 5])
    parser.add_argument("--stock", type=float, nargs="+", default=[5, 15])
    parser.add_argument("--stock-child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    if options.stock_child:
        tune_stock(*options.stock_child)
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = scratch / "m.onnx"
        onnx.save(seeded_light(options.model, seed=0), model)
        builds: dict[str, Path] = {}
        for minutes in options.ours:
            builds[f"ours, {minutes:g} min"] = build_ours(model, scratch / f"o{minutes}", minutes)
        builds |= build_stock(model, scratch, options.stock, next(iter(builds.values())))
        show(options.model, model, builds, scratch)


def build_ours(model: Path, scratch: Path, minutes: float) -> Path:
    compiler = MetaScheduleCompiler(scratch / "compiler")
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=TARGET)
    (tasks,) = compiler.tasks([job])
    planned = tuple(
        PlannedTask(resolved=ResolvedTask(task, Miss("absent")), trials=8, gain_ms=1.0)
        for task in tasks
    )
    shard = Shard(
        index=0,
        target="cpu",
        labels=(),
        tasks=planned,
        budget=Budget(seconds=60 * minutes, trials=None, min_gain_percent_per_minute=0.0),
        predicted_seconds=0.0,
    )
    tuner = MetaScheduleTuner(
        targets={"cpu": TARGET},
        shapes={"m.onnx": {}},
        device=DEVICE,
        toolchain=toolchain(),
        source=Provenance(),
        clock=time,
        scratch=scratch / "tuner",
    )
    latest = {o.key: o for o in tuner.tune(shard, {("m.onnx", "head"): model}, lambda _: True)}
    records = {key: outcome.records for key, outcome in latest.items()}
    directory = scratch / "build"
    (built,) = compiler.build(
        [BuildJob(model=job, records=records, sources={}, directory=directory)]
    )
    compiler.close()
    assert built.error is None, built.error
    print(f"ours, {minutes:g} min: {sum(o.trials for o in latest.values())} trials", flush=True)
    return directory


def build_stock(model: Path, scratch: Path, minutes: list[float], like: Path) -> dict[str, Path]:
    prepared = prepare(model, shapes={}, into=scratch / "prepared", path="m.onnx")
    work = scratch / "stock"
    work.mkdir()
    environment = os.environ | {"TVM_NUM_THREADS": str(THREADS)}
    command = [sys.executable, __file__, "-", "--stock-child", str(prepared.optimized), str(work)]
    started = time.monotonic()
    builds = {}
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        for until in minutes:
            left = started + 60 * until - time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, left))
            copy = scratch / f"stock-{until}"
            shutil.copytree(work, copy)
            builds[f"stock, {until:g} min"] = copy
        os.killpg(child.pid, 9)
    return {
        name: compiled_stock(prepared.optimized, copy, copy / "build", like)
        for name, copy in builds.items()
    }


def opened(file: str | Path):
    target = tvm_target(TARGET).target
    with target:
        return target, relax.get_pipeline("zero")(from_onnx(onnx.load(file)))


def tune_stock(file: str, work: str) -> None:
    target, module = opened(file)
    ms.relax_integration.tune_relax(module, {}, target, work, max_trials_global=1_000_000)


def compiled_stock(file: Path, database: Path, directory: Path, like: Path) -> Path:
    target, module = opened(file)
    lines = (database / "database_tuning_record.json").read_text().splitlines()
    whole = [line for line in lines if is_json(line)]  # the last may be half written
    (database / "database_tuning_record.json").write_text("\n".join(whole) + "\n")
    print(f"{database.name}: {len(whole)} records", flush=True)
    known = ms.database.JSONDatabase(work_dir=str(database))
    with target, known, tvm.transform.PassContext(opt_level=3):
        module = relax.transform.MetaScheduleApplyDatabase()(module)
        executable = relax.build(module, target=target)
    directory.mkdir()
    executable.export_library(str(directory / "model.so"))
    msgspec.structs.replace(ArtifactFile.read(like), file="model.so").write(directory)
    return directory


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def show(name: str, model: Path, builds: dict[str, Path], scratch: Path) -> None:
    bench = FreshProcesses(scratch / "bench")
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for label, directory in builds.items():
            times.setdefault(label, []).append(bench.single_ms(directory))
        reference = bench.reference_ms(model, shapes={}, threads=THREADS)
        times.setdefault("ONNX Runtime", []).append(reference)
    print(f"| light_{name}, {THREADS} thread | ms (median of {ROUNDS}) | all |")
    print("|---|--:|---|")
    for label, found in times.items():
        every = ", ".join(f"{t:.2f}" for t in found)
        print(f"| {label} | {statistics.median(found):.2f} | {every} |")


if __name__ == "__main__":
    main()
