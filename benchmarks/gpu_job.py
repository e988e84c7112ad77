"""The job of one lease of a GPU: what is worth most comes first, and each step has a limit.

After each step its figures are written to <out>/gpu.json, with the verdicts and outcomes of the job
beside it: a lease that is cut short still leaves what was measured until then. A step whose limit
does not fit into the seconds that are left gets these, and none begins with less than ten.
Ends with 1 where a step did not end as it should.

    benchmarks/gpu.sh [FOLDER WITH part-00, part-01, ...]     # on a machine without a network
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.kit.command import Many, command_line
from benchmarks.kit.model_changes import new_weights

_FEW_SECONDS = 10
_GRACE_SECONDS = 20
_PRODUCTS = {"MatMul", "Gemm", "Conv"}
_CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - name: gpu
    kind: cuda
    arch: native
    device-wait-seconds: 60
    usd-per-hour: 4
cache:
  url: cache
"""
_TUNEGATE = (sys.executable, "-P", "-m", "tunegate")
_BENCHMARK = (sys.executable, "-m")
_FIRST_PICKS = "transformer-128 --seconds 160 --per-task 64 --tasks 4"


class Step(NamedTuple):
    """A command, the code that it ends with where all is right, and what of its output is kept."""

    name: str
    command: tuple[str, ...]
    limit_seconds: float
    expected: int = 0
    keeps: str = ""
    prepare: Callable[[], None] | None = None


def steps(repository: Path, minutes: float, changed: Path) -> list[Step]:
    """In the order of their worth. `changed` is the model that two of them change."""
    run = (*_TUNEGATE, "run", "--base", "HEAD~1", "--minutes", "0.5")
    return [
        Step("doctor", (*_TUNEGATE, "doctor", "-v"), 120),
        Step("warm", (*_TUNEGATE, "warm", "--minutes", str(minutes)), 280, keeps="outcome-0.json"),
        Step(
            *("weights", run, 170),
            keeps="verdict.json",
            prepare=lambda: _commit(repository, changed, new_weights),
        ),
        Step(
            *("slower", run, 170),
            expected=1,
            keeps="verdict.json",
            prepare=lambda: _commit(repository, changed, more_work),
        ),
        # What is found first, by what many more find: the goal is 0.9 of 64.
        Step("first", (*_BENCHMARK, "benchmarks.tuning.gpu_tuning", *_FIRST_PICKS.split()), 230),
        Step("tests", (*_BENCHMARK, "pytest", "-q", "-m", "gpu", "tests/gpu"), 300),
        *(
            Step(name, (*_BENCHMARK, f"benchmarks.{module}", *arguments.split()), limit)
            for name, module, arguments, limit in (
                ("gate", "gate.gpu_launches", "transformer-128 --launches 3", 150),
                ("whole", "gate.gpu_launches", "transformer --launches 2 --batches 1", 150),
            )
        ),
    ]


def more_work(model: onnx.ModelProto, most: int = 12) -> onnx.ModelProto:
    """The model in which each of its widest products runs again, on other weights, and the mean of
    both goes on: no optimizer can leave it out."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    wide = [
        node
        for node in graph.node
        if node.op_type in _PRODUCTS and len(node.input) > 1 and node.input[1] in weights
    ]
    wide.sort(key=lambda node: -int(np.prod(weights[node.input[1]].dims)))
    chosen = {node.output[0] for node in wide[:most]}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        output = node.output[0]
        if output not in chosen:
            continue
        weight = weights[node.input[1]]
        values = (numpy_helper.to_array(weight) * 0.999).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(values, f"{output}_weight_again"))
        again = onnx.NodeProto()
        again.CopyFrom(node)
        again.name, again.input[1] = f"{node.name}_again", f"{output}_weight_again"
        again.output[0], node.output[0] = f"{output}_again", f"{output}_first"
        mean = helper.make_node(
            "Mean", [f"{output}_first", f"{output}_again"], [output], name=f"{node.name}_mean"
        )
        nodes += [again, mean]
    del graph.node[:]
    graph.node.extend(nodes)
    return changed


def prepared_repository(at: Path, models: Sequence[Path], config: str) -> Path:
    """A repository with these models and one commit."""
    (at / "models").mkdir(parents=True)
    for model in models:
        shutil.copyfile(model, at / "models" / model.name)
    (at / "tunegate.yaml").write_text(config)
    (at / ".gitignore").write_text("cache/\n.tunegate/\n")
    _git(at, "init", "-q", "-b", "main")
    _git(at, "add", "--all")
    _git(at, "commit", "-q", "-m", "models")
    return at


def carried_out(step: Step, at: Path, out: Path, limit_seconds: float) -> dict[str, Any]:
    """How the step ended, with its log under `out`. A step out of time is interrupted, as a user
    would, so that it writes what it has."""
    if step.prepare is not None:
        step.prepare()
    began = time.monotonic()
    log = out / f"{step.name}.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            step.command, cwd=at, stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            code = None
            _end(process)
    figures = {
        "step": step.name,
        "exit_code": code,
        "expected": step.expected,
        "is_as_expected": code == step.expected,
        "seconds": round(time.monotonic() - began, 1),
        "last_line": (log.read_text(errors="replace").strip().splitlines() or [""])[-1][:200],
    }
    kept = at / ".tunegate" / step.keeps
    if step.keeps and kept.is_file():
        shutil.copyfile(kept, out / f"{step.name}.{step.keeps}")
    return figures


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _commit(
    repository: Path, file: Path, change: Callable[[onnx.ModelProto], onnx.ModelProto]
) -> None:
    onnx.save(change(onnx.load(file)), file)
    _git(repository, "commit", "-qam", "change")


def _git(at: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *identity, *arguments], cwd=at, check=True)


def _written(out: Path, machine: str, done: Sequence[dict[str, Any]]) -> None:
    fresh = out / "gpu.json.fresh"
    fresh.write_text(json.dumps({"machine": machine, "steps": list(done)}, indent=1))
    fresh.replace(out / "gpu.json")


def main() -> int:
    options = command_line(
        __doc__,
        out=".gpu-results",
        seconds=560.0,
        minutes=2.0,
        models=Many(str, is_required=False),
        config="",
        steps=Many(str, is_required=False),
    )
    began, checkout = time.monotonic(), Path.cwd()
    out = Path(options.out).resolve()
    scratch = out / "job"
    shutil.rmtree(scratch, ignore_errors=True)
    files = [Path(each).resolve() for each in options.models or ()]
    if not files:
        from benchmarks.kit.models import saved  # noqa: PLC0415 -- other imports than its own models

        out.mkdir(parents=True, exist_ok=True)
        files = [saved(name, out) for name in ("transformer", "resnet50")]
    config = Path(options.config).read_text() if options.config else _CONFIG
    repository = prepared_repository(scratch, files, config)
    machine = os.environ.get("GPU_MACHINE", "")
    done: list[dict[str, Any]] = []
    for step in steps(repository, options.minutes, repository / "models" / files[0].name):
        left = options.seconds - (time.monotonic() - began)
        if options.steps and step.name not in options.steps:
            continue
        if left < _FEW_SECONDS:
            done.append({"step": step.name, "is_left_out": True})
        else:
            at = checkout if step.command[: len(_TUNEGATE)] != _TUNEGATE else repository
            figures = carried_out(step, at, out, min(step.limit_seconds, left))
            done.append(figures)
            print(f"== {step.name}: {figures['last_line']}", flush=True)
        _written(out, machine, done)
    return int(any(not each.get("is_as_expected", True) for each in done))


if __name__ == "__main__":
    sys.exit(main())
