"""The concatenations of a model with channels last: loops as they are written,
and split where the inputs meet.

    PYTHONPATH=.:benchmarks python benchmarks/concatenations.py [squeezenet] [--rounds 7]

One thread; both kernels of each shape timed in turn, and their outputs compared. Prints
the table of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from in_process import RESOLVED, imported
from stock_model import named_model, one_thread
from tvm.s_tir.meta_schedule.arg_info import ArgInfo

from tunegate.edges.metaschedule.passes.split_concatenations import with_split_choices


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="squeezenet")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    one_thread()
    with tempfile.TemporaryDirectory() as folder:
        functions = imported(named_model(options.model), Path(folder) / "m")
    print(f"| {options.model}, shape | times | as written, ms | split, ms | ratio |")
    print("|---|--:|--:|--:|--:|")
    sums = np.zeros(2)
    for function in {f.workload.digest: f for f in functions}.values():
        written = function.workload.module
        split = with_split_choices(written)
        if split is written:
            continue
        times = sum(f.weight for f in functions if f.workload.digest == function.workload.digest)
        shapes = [tuple(map(int, a.shape)) for a in ArgInfo.from_prim_func(written["main"])]
        pairs = paired([written, split], shapes, options.rounds)
        columns = [statistics.median(column) for column in zip(*pairs, strict=True)]
        ratio = statistics.median(a / b for a, b in pairs)
        sums += times * np.array(columns)
        print(f"| {shown(shapes)} | {times} | {columns[0]:.3f} | {columns[1]:.3f} | {ratio:.1f}x |")
    print(f"| all | | {sums[0]:.3f} | {sums[1]:.3f} | {sums[0] / sums[1]:.1f}x |")


def paired(modules: list[Any], shapes: list[tuple[int, ...]], rounds: int) -> list[list[float]]:
    """Milliseconds of each kernel, round by round."""
    rng = np.random.default_rng(0)
    inputs = [tvm.runtime.tensor(rng.normal(size=s).astype("float32")) for s in shapes[:-1]]
    kernels = [tvm.driver.build(module, target=RESOLVED.target) for module in modules]
    outputs = [tvm.runtime.empty(shapes[-1], "float32") for _ in kernels]
    for kernel, output in zip(kernels, outputs, strict=True):
        kernel["main"](*inputs, output)
    np.testing.assert_array_equal(outputs[0].numpy(), outputs[1].numpy())
    return [
        [ms(kernel, [*inputs, output]) for kernel, output in zip(kernels, outputs, strict=True)]
        for _ in range(rounds)
    ]


def ms(kernel: Any, arguments: list[Any]) -> float:
    timed = kernel.time_evaluator("main", tvm.cpu(), number=50, repeat=3)
    return float(np.median(timed(*arguments).results)) * 1e3


def shown(shapes: list[tuple[int, ...]]) -> str:
    return " + ".join("x".join(map(str, shape[1:])) for shape in shapes[:-1])


if __name__ == "__main__":
    main()
