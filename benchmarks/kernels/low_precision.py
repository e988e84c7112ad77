"""Products and convolutions in bfloat16 and int8: TVM with the processor's dot products, beside
float32, ONNX Runtime and, where it is installed, OpenVINO.

    python -m benchmarks.kernels.low_precision [--rounds 15]

One thread; all are timed in turn: medians of processor time, which other
processes disturb less than the clock. A time of TVM's includes rounding the float32 image to
the operands; the result stays float32 or int32. Prints the tables of docs/benchmarks: GFLOP/s,
and the largest error as a share of the largest output of float32. A column for each way that the
processor has, of avx512_bf16, avx512_vnni, amx_bf16 and amx_int8.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tvm

from benchmarks.kit.command import command_line
from benchmarks.kit.dot_products import (
    COLUMNS,
    Case,
    Dot,
    configuration,
    dots_of_this_machine,
    packed,
    product,
    rows_of,
    words,
)
from benchmarks.kit.models import one_thread
from benchmarks.kit.peers import onnx_runtime, openvino
from benchmarks.kit.tables import heading, row

CASES = (
    Case("product 128 x 768 x 768", 128, 1, 768, 768),
    Case("product 128 x 768 x 3072", 128, 1, 768, 3072),
    Case("1x1, 28 x 28, 256 to 512", 28, 28, 256, 512),
    Case("3x3, 28 x 28, 128 to 128", 28, 28, 128, 128, 3),
    Case("3x3, 14 x 14, 256 to 256", 14, 14, 256, 256, 3),
    Case("3x3, 7 x 5, 33 to 37", 7, 5, 33, 37, 3),
)


class Candidate(NamedTuple):
    """One way to compute a case: `run` computes it, `out` returns its numbers as float32."""

    run: Callable[[], object]
    out: Callable[[], Any]


def main() -> None:
    options = command_line(__doc__, rounds=15)
    one_thread()
    speeds, errors = [], []
    found: dict[str, Candidate] = {}
    for case in CASES:
        image, weights = drawn(case)
        found = candidates(case, image, weights)
        exact = next(iter(found.values())).out()
        for each in found.values():
            each.run()
        medians = in_turn(found, options.rounds)
        speeds.append([f"{case.floating_operations / medians[name] / 1e9:.0f}" for name in found])
        errors.append([percent(each.out(), exact) for each in found.values()])
    for title, table in (("GFLOP/s", speeds), ("largest error, %", errors)):
        heading(" | ".join((title, *found)))
        for case, cells in zip(CASES, table, strict=True):
            row(case.name, *cells)


def drawn(case: Case) -> tuple[Any, Any]:
    """An image of numbers from 0 to 1, as after a ReLU, and weights."""
    rng = np.random.default_rng(0)
    image = rng.random((case.height * case.width, case.depth), "float32")
    weights = rng.normal(0, case.depth**-0.5, (case.taps**2, case.depth, case.out))
    return image, weights.astype("float32")


def candidates(case: Case, image: Any, weights: Any) -> dict[str, Candidate]:
    found = {
        f"TVM {name}": ours(case, dot, image, weights)
        for name, dot in dots_of_this_machine().items()
    }
    found |= {
        f"ONNX Runtime {kind}": Candidate(*onnx_runtime(case, image, weights, kind))
        for kind in ("float32", "int8")
    }
    for kind in ("float32", "bfloat16"):
        if peer := openvino(case, image, weights, kind):
            found[f"OpenVINO {kind}"] = Candidate(*peer)
    return found


def ours(case: Case, dot: Dot, image: Any, weights: Any) -> Candidate:
    number = {1: "float32", 2: "uint16", 4: "uint8"}[dot.each]
    below = case.rows + (case.taps - 1) * (case.padded_width + 1)
    values, scale = rounded(weights, dot)
    x, w, config = (tvm.runtime.tensor(v) for v in (image, packed(values, case, dot),
                                                     configuration()))  # fmt: skip
    depth, columns = words(case, dot), -(-case.out // COLUMNS) * COLUMNS
    narrow = tvm.runtime.tensor(np.zeros((below, depth * dot.each), number))
    operands = narrow._create_view((below, depth), dot.word)
    result = tvm.runtime.tensor(np.zeros((case.rows, columns), dot.total))
    rounding, multiplying = rows_of(case, dot), product(case, dot)

    def run() -> None:
        rounding(x, narrow)
        multiplying(config, operands, w, result)

    def out() -> Any:
        run()
        whole = result.numpy()[: case.height * case.padded_width, : case.out] * scale
        return whole.reshape(case.height, case.padded_width, -1)[:, : case.width].reshape(
            -1, case.out
        )

    return Candidate(run, out)


def rounded(weights: Any, dot: Dot) -> tuple[Any, Any]:
    """The weights as the kernel's numbers, and what a sum is multiplied by."""
    if dot.each == 1:
        return weights, np.float32(1)
    if dot.each == 4:
        scale = np.abs(weights).max() / 127
        return np.round(weights / scale).astype("int8"), np.float32(scale / 255)
    bits = weights.view("uint32")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("uint16"), np.float32(1)


def in_turn(found: dict[str, Candidate], rounds: int) -> dict[str, float]:
    """The median seconds of each; each turn is about 5 ms."""
    repeats = {name: max(1, int(5e-3 / seconds(each.run, 3))) for name, each in found.items()}
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, each in found.items():
            times[name].append(seconds(each.run, repeats[name]))
    return {name: statistics.median(taken) for name, taken in times.items()}


def seconds(run: Callable[[], object], repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - begin) / repeats


def percent(out: Any, exact: Any) -> str:
    return f"{np.abs(out - exact).max() / np.abs(exact).max() * 100:.2g}"


if __name__ == "__main__":
    main()
