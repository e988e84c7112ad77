"""The concatenations of a model with channels last: loops as they are written,
and split where the inputs meet.

    python -m benchmarks.kernels.concatenations [squeezenet] [--rounds 7]

One thread; both kernels of each shape timed in turn, and their outputs compared. Prints
the table of docs/benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm.s_tir.meta_schedule.arg_info import ArgInfo

from benchmarks.kit.averages import paired
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import RESOLVED, imported
from benchmarks.kit.models import named_model, one_thread
from benchmarks.kit.tables import heading, row
from tunegate.compiler.schedules.default_schedule import with_split_choices


def main() -> None:
    options = command_line(__doc__, "model=squeezenet", rounds=7)
    one_thread()
    with scratch_folder() as folder:
        functions = imported(named_model(options.model), folder / "m")
    heading(f"{options.model}, shape | times | as written, ms | split, ms | ratio")
    sums = np.zeros(2)
    for function in {f.workload.digest: f for f in functions}.values():
        written = function.workload.module
        split = with_split_choices(written)
        if split is written:
            continue
        times = sum(f.weight for f in functions if f.workload.digest == function.workload.digest)
        shapes = [tuple(map(int, a.shape)) for a in ArgInfo.from_prim_func(written["main"])]
        first, second, ratio = paired(timers([written, split], shapes), options.rounds)
        sums += times * np.array([first, second])
        row(shapes_text(shapes), times, f"{first:.3f}", f"{second:.3f}", f"{ratio:.1f}x")
    row("all", "", f"{sums[0]:.3f}", f"{sums[1]:.3f}", f"{sums[0] / sums[1]:.1f}x")


def timers(modules: list[Any], shapes: list[tuple[int, ...]]) -> list[Callable[[], float]]:
    """Returns a timer of each kernel, after it has compared their outputs."""
    rng = np.random.default_rng(0)
    inputs = [tvm.runtime.tensor(rng.normal(size=s).astype("float32")) for s in shapes[:-1]]
    kernels = [tvm.driver.build(module, target=RESOLVED.target) for module in modules]
    outputs = [tvm.runtime.empty(shapes[-1], "float32") for _ in kernels]
    for kernel, output in zip(kernels, outputs, strict=True):
        kernel["main"](*inputs, output)
    np.testing.assert_array_equal(outputs[0].numpy(), outputs[1].numpy())
    both = zip(kernels, outputs, strict=True)
    return [partial(ms, kernel, [*inputs, output]) for kernel, output in both]


def ms(kernel: Any, arguments: list[Any]) -> float:
    timed = kernel.time_evaluator("main", tvm.cpu(), number=50, repeat=3)
    return float(np.median(timed(*arguments).results)) * 1e3


def shapes_text(shapes: list[tuple[int, ...]]) -> str:
    return " + ".join("x".join(map(str, shape[1:])) for shape in shapes[:-1])


if __name__ == "__main__":
    main()
