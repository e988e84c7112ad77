"""Record A/A launches on this machine, for `research.gate_rules.bench_rules`.

    python -m benchmarks.gate.collect_launches FILE.npz --launches 250
        [--series cnn-ort-idle ...]

Each launch is two fresh processes that run the same artifact, in ABBA blocks, as the gate does. A
series is MODEL-RUNTIME-STATE: cnn or mlp, ort or tvm, idle or busy; busy runs a program of its own
beside it that computes and copies memory in bursts. Series that FILE has already are kept. At most
20 inferences of a block are stored.
"""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from research.gate_rules.recorded_launches import read_launches, write_launches
from tests.support.small_onnx import save

from benchmarks.kit.command import Choice, command_line, scratch_folder
from tunegate.config import TargetConfig
from tunegate.measure.bench_messages import Start
from tunegate.measure.bench_process import Process
from tunegate.ports import Builder, BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

SERIES = [f"{m}-{r}-{s}" for s in ("idle", "busy") for r in ("ort", "tvm") for m in ("cnn", "mlp")]
PAIRS, STORED = 12, 20
BLOCK_MS, FEWEST, WARM_UP_SECONDS = 25.0, 5, 0.3
HOG = """
import os, random, time
import numpy as np
chance = random.Random(1)
block = np.ones(4_000_000)
parent = os.getppid()
while os.getppid() == parent:
    until = time.monotonic() + chance.uniform(0.05, 1.0)
    while time.monotonic() < until:
        block.copy() if chance.random() < 0.5 else block.sum()
    time.sleep(chance.uniform(0.0, 0.8))
"""


def main() -> None:
    options = command_line(__doc__, ("file", Path), launches=250, series=Choice(SERIES, SERIES))
    known = {}
    if options.file.exists():
        for series in read_launches(options.file):
            known[series.name] = (series.times_ms * 1e6, series.seconds_per_launch)
    with scratch_folder() as folder:
        for name in options.series:
            artifact = built(name, folder / name)
            with beside(name.endswith("busy")):
                known[name] = recorded(artifact, options.launches, folder)
            write_launches(options.file, known)
            print(f"{name}: {options.launches} launches, {known[name][1]:.2f} s each", flush=True)


@contextlib.contextmanager
def beside(is_busy: bool) -> Iterator[None]:
    hog = subprocess.Popen([sys.executable, "-c", HOG]) if is_busy else None
    try:
        yield
    finally:
        if hog is not None:
            hog.kill()
            hog.wait()


def recorded(artifact: Path, launches: int, scratch: Path) -> tuple[np.ndarray, float]:
    rng = random.Random(1)
    inferences = block_of(artifact, scratch)
    stored = min(inferences, STORED)
    picked = np.linspace(0, inferences - 1, stored).round().astype(int)
    times = np.zeros((launches, PAIRS, 2, stored), dtype=np.uint32)
    started = time.monotonic()
    for launch in range(launches):
        with contextlib.ExitStack() as stack:
            processes = [open_process(artifact, scratch, stack) for _ in range(2)]
            order = [0, 1]
            rng.shuffle(order)
            for arm in order:
                processes[arm].start()
            first = 0
            for pair in range(PAIRS):
                first = rng.randrange(2) if pair % 2 == 0 else 1 - first
                for arm in (first, 1 - first):
                    block = np.array(processes[arm].block_ms(inferences)) * 1e6
                    times[launch, pair, arm] = block[picked]
    return times, (time.monotonic() - started) / launches


def block_of(artifact: Path, scratch: Path) -> int:
    with contextlib.ExitStack() as stack:
        milliseconds = open_process(artifact, scratch, stack).start()
    return max(FEWEST, int(BLOCK_MS / milliseconds))


def open_process(artifact: Path, scratch: Path, stack: contextlib.ExitStack) -> Process:
    process = Process(Start(str(artifact), 1, WARM_UP_SECONDS, 1), scratch / "bench.log", {})
    stack.callback(process.close)
    return process


def built(name: str, directory: Path) -> Path:
    model, runtime, _ = name.split("-")
    directory.mkdir()
    file = save(cnn() if model == "cnn" else mlp(), directory / "m.onnx")
    target = TargetConfig(name="cpu", threads=1)
    job = BuildJob(
        model=ModelJob(file=file, path="m.onnx", shapes={}, target=target),
        records={},
        sources={},
        directory=directory / "artifact",
    )
    builder: Builder = (
        reference_builder(directory / "o", 1)
        if runtime == "ort"
        else MetaScheduleCompiler(directory / "c", seed=1)
    )
    (build,) = builder.build([job])
    assert build.error is None, build.error
    return directory / "artifact"


def cnn() -> onnx.ModelProto:
    """Five convolutions, about a millisecond."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for layer in range(5):
        weight = rng.normal(0, 0.1, (16, 16, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes.append(helper.make_node("Conv", [x, f"w{layer}"], [f"c{layer}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
        x = f"r{layer}"
    return model(nodes, weights, x, [1, 16, 40, 40], [1, 16, 40, 40])


def mlp() -> onnx.ModelProto:
    """Three small matrices: tens of microseconds, where the process itself is the noise."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for layer in range(3):
        weight = rng.normal(0, 0.1, (128, 128)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [x, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]))
        x = f"r{layer}"
    return model(nodes, weights, x, [8, 128], [8, 128])


def model(
    nodes: list[onnx.NodeProto],
    weights: list[onnx.TensorProto],
    output: str,
    before: list[int],
    after: list[int],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, before)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, after)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
