"""Does a whole gate find a head that is slow in few of its inferences?

    python -m benchmarks.gate.live_stalls [--gates 4] [--seconds 60] [--sizes 40 112]

`tunegate compare` gates nine convolutions against themselves, under ONNX Runtime with one thread.
Head and base draw a random number in each inference. If it is low enough, a loop computes what
many inferences cost, and the result counts nothing. Only in the base it never is. Each row is a
share of slow inferences and how often the time of an inference each takes. Prints a table.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading, row

_LAYERS, _CHANNELS = 9, 16
_TIMED = 50
_SAID = ("fail", "pass", "inconclusive", "invalid-env")


class Stall(NamedTuple):
    """One inference in `one_in` takes `times` as long; none in 0."""

    one_in: int
    times: int


_STALLS = (
    Stall(0, 0),
    Stall(200, 100),
    Stall(500, 100),
    Stall(1000, 100),
    Stall(1000, 500),
    Stall(2000, 1000),
)


def main() -> None:
    options = command_line(__doc__, gates=4, seconds=60.0, sizes=[40, 112])
    columns = "one inference in | takes | mean | gates | fail | pass | undecided | invalid-env"
    heading(f"model, ms | {columns} | seconds, median", words=())
    for size in options.sizes:
        with scratch_folder() as folder:
            inference_ms, trip_ms = times_of(size, folder)
            for stall in _STALLS:
                trips = round(stall.times * inference_ms / trip_ms)
                write_model(folder / "base" / "m.onnx", size, -1.0, trips)
                share = 1 / stall.one_in if stall.one_in else 0.0
                write_model(folder / "head" / "m.onnx", size, share, trips)
                gates = [gate(folder, options.seconds) for _ in range(options.gates)]
                show(inference_ms, stall, gates)


def show(inference_ms: float, stall: Stall, gates: list[tuple[str, float]]) -> None:
    statuses = [status for status, _ in gates]
    slow = (f"{stall.one_in:,}", f"{stall.times:,} x") if stall.one_in else ("", "")
    mean_percent = 100 * stall.times / stall.one_in if stall.one_in else 0.0
    seconds = statistics.median(seconds for _, seconds in gates)
    counts = (statuses.count(status) for status in _SAID)
    row(
        f"{inference_ms:.1f}", *slow, f"+{mean_percent:.0f}%", len(gates), *counts, f"{seconds:.0f}"
    )


def gate(folder: Path, seconds: float) -> tuple[str, float]:
    """Returns the status that `tunegate compare` gives head against base, and its seconds."""
    command = [sys.executable, "-m", "tunegate", "compare", "--json", "--minutes", "0"]
    files = [str(folder / side / "m.onnx") for side in ("base", "head")]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--gate-seconds", f"{seconds:g}", "--out", str(folder / "out"), *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        cwd=folder,
    )
    return json.loads(done.stdout)["findings"][0]["status"], time.monotonic() - started


def times_of(size: int, folder: Path) -> tuple[float, float]:
    """Returns the milliseconds of an inference that is not slow, and of one trip of its loop."""
    write_model(folder / "none" / "m.onnx", size, 0.0, 0)
    write_model(folder / "each" / "m.onnx", size, 1.0, _TIMED)
    none_ms, each_ms = (median_ms(folder / name / "m.onnx", size) for name in ("none", "each"))
    return none_ms, (each_ms - none_ms) / _TIMED


def median_ms(file: Path, size: int) -> float:
    one_thread = onnxruntime.SessionOptions()
    one_thread.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), one_thread)
    x = np.random.default_rng(0).random((1, _CHANNELS, size, size), np.float32)
    times = []
    for _ in range(_TIMED):
        started = time.perf_counter()
        session.run(None, {"x": x})
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


def write_model(file: Path, size: int, share: float, trips: int) -> None:
    """Writes a model that makes `trips` more in this share of its inferences."""
    shape = [1, _CHANNELS, size, size]
    rng = np.random.default_rng(0)
    weights = {
        f"w{layer}": rng.normal(0, 0.1, (_CHANNELS, _CHANNELS, 3, 3)).astype(np.float32)
        for layer in range(_LAYERS)
    }
    nodes, x = [], "x"
    for layer in range(_LAYERS):
        nodes.append(helper.make_node("Conv", [x, f"w{layer}"], [f"c{layer}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
        x = f"r{layer}"

    # One trip of the loop is a convolution. Its result times 0 is added to that of the model.
    def tensor(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    trip = helper.make_graph(
        [
            helper.make_node("Identity", ["goes on"], ["goes on again"]),
            helper.make_node("Conv", ["h", "w0"], ["product"], pads=[1] * 4),
            helper.make_node("Tanh", ["product"], ["next"]),
        ],
        "trip",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes on", TensorProto.BOOL, []),
            tensor("h"),
        ],
        [helper.make_tensor_value_info("goes on again", TensorProto.BOOL, []), tensor("next")],
    )
    slow = [
        helper.make_node("Loop", ["trips", "", x], ["last"], body=trip),
        helper.make_node("Mul", ["last", "zero"], ["slow"]),
    ]
    quick = [helper.make_node("Mul", [x, "zero"], ["quick"])]
    nodes += [
        helper.make_node("RandomUniform", [], ["chance"], shape=[1]),
        helper.make_node("Less", ["chance", "share"], ["is low"]),
        helper.make_node("Squeeze", ["is low"], ["is slow"]),
        helper.make_node(
            "If",
            ["is slow"],
            ["nothing"],
            then_branch=helper.make_graph(slow, "slow", [], [tensor("slow")]),
            else_branch=helper.make_graph(quick, "quick", [], [tensor("quick")]),
        ),
        helper.make_node("Add", [x, "nothing"], ["y"]),
    ]
    weights |= {
        "share": np.array([share], np.float32),
        "trips": np.array(trips, np.int64),
        "zero": np.array(0, np.float32),
    }
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "stalls", [tensor("x")], [tensor("y")], initializers)
    opsets = [helper.make_opsetid("", 17)]
    file.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), file)


if __name__ == "__main__":
    main()
