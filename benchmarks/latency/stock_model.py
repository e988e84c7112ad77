"""A model tuned by stock `tune_relax`, kept in a folder: the peer of quality.py.

    python -m benchmarks.latency.stock_model squeezenet FOLDER [--trials 1000] [--seconds 900]
        [--strategy replay-trace]

FOLDER gets the database and `tuned.json` with the seconds that it took; a folder that has it is not
tuned again. After `--seconds` it is killed, and what it had booked counts: its scheduler books
nothing before every task has had 64 trials, so for a number of seconds give it the `--trials` that
fit them. One thread runs the candidates, as in ours; builder and search use all cores, as they do.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import onnx
import psutil
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.s_tir import meta_schedule as ms

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, named_model, one_thread
from tunegate.compiler.targets import tvm_target
from tunegate.models.preparation import prepare
from tunegate.system.output.artifact_file import ArtifactFile

BUILD_SECONDS = 600.0


class Tuned(msgspec.Struct, frozen=True):
    """The effort of stock TVM: `seconds` of wall-clock for `trials` measured candidates."""

    trials: int
    seconds: float


def optimized(name: str, scratch: Path) -> Path:
    """The file that ours imports too, written to `scratch`."""
    model = scratch / "m.onnx"
    onnx.save(named_model(name), model)
    return prepare(model, shapes={}, into=scratch / "prepared", path="m.onnx").optimized


def patient_builder() -> Any:
    """Stock counts what its workers import to their first candidate's 30 s. On a slow machine that
    takes them all, and no candidate is ever built."""
    return ms.builder.LocalBuilder(timeout_sec=BUILD_SECONDS)


def one_thread_runner() -> Any:
    """Stock's runner. Its processes inherit the number of threads; they do not find our modules, so
    that no function of ours can set it there."""
    one_thread()
    return ms.runner.LocalRunner()


def tune(name: str, folder: Path, trials: int, strategy: str = "evolutionary") -> Tuned:
    done = folder / "tuned.json"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with scratch_folder() as scratch:
            target, module = open_build(optimized(name, scratch))
            started = time.monotonic()
            ms.relax_integration.tune_relax(
                module,
                {},
                target,
                str(folder),
                max_trials_global=trials,
                builder=patient_builder(),
                runner=one_thread_runner(),
                strategy=strategy,
            )
        noted(folder, time.monotonic() - started)
    return msgspec.json.decode(done.read_bytes(), type=Tuned)


def tune_for(seconds: float, name: str, folder: Path, *more: str) -> Tuned:
    """Tunes in a process that is ended when the time is over."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.latency.stock_model", name, str(folder), *more]
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        end(process)
        noted(folder, seconds)
    return msgspec.json.decode((folder / "tuned.json").read_bytes(), type=Tuned)


def noted(folder: Path, seconds: float) -> None:
    trials = whole_lines(folder / "database_tuning_record.json")
    (folder / "tuned.json").write_bytes(msgspec.json.encode(Tuned(trials, seconds)))


def end(process: subprocess.Popen[bytes]) -> None:
    """Its builders and runners, too."""
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    process.kill()
    process.wait()


def whole_lines(file: Path) -> int:
    """The number of whole lines of a database; a last line that was cut is taken away."""
    lines = file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n")]
    file.write_text("".join(kept))
    return len(kept)


def open_build(file: Path) -> tuple[Any, Any]:
    target = tvm_target(TARGET).target
    with target:
        return target, relax.get_pipeline("zero")(from_onnx(onnx.load(file)))


def build(file: Path, folder: Path, directory: Path, like: Path) -> Path:
    """The prepared model built with the folder's database, loadable like the artifact `like`."""
    target, module = open_build(file)
    with scratch_folder() as copy:
        for part in ("workload", "tuning_record"):
            text = (folder / f"database_{part}.json").read_text()
            (copy / f"database_{part}.json").write_text(text)
        known = ms.database.JSONDatabase(work_dir=copy)
        with target, known, tvm.transform.PassContext(opt_level=3):
            module = relax.transform.MetaScheduleApplyDatabase()(module)
            executable = relax.build(module, target=target)
    directory.mkdir()
    executable.export_library(str(directory / "model.so"))
    msgspec.structs.replace(ArtifactFile.read(like), file="model.so").write(directory)
    return directory


def main() -> None:
    options = command_line(
        __doc__, "model", ("folder", Path), trials=1000, seconds=float, strategy="evolutionary"
    )
    if options.seconds is None:
        tuned = tune(options.model, options.folder, options.trials, options.strategy)
    else:
        more = ("--trials", str(options.trials), "--strategy", options.strategy)
        tuned = tune_for(options.seconds, options.model, options.folder, *more)
    print(json.dumps(msgspec.to_builtins(tuned)))


if __name__ == "__main__":
    main()
