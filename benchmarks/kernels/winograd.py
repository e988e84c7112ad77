"""3x3 convolutions in fewer products (Winograd), beside the direct form and ONNX Runtime.

    python -m benchmarks.kernels.winograd [--cpu native] [--networks YOLO ...] [--rounds 15]
        [--save NAME --merge]

Layers of ResNet, YOLO and PP-OCR, with a bias and an activation: default schedules on one thread,
in turn in one process, medians of processor time. `--cpu haswell` compiles for AVX2 on any machine;
ONNX Runtime takes what the machine has. The form is that which a build chooses; where that is the
direct one, the ratio is 1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm.s_tir import SBlock
from tvm_ffi import structural_walk

from benchmarks.kernels.grouped_convolutions import Case, model, onnx_runtime, runner, values
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import imported
from benchmarks.kit.models import one_thread
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import DIRECT, with_algorithm
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

LAYERS = {
    "ResNet": ((64, 56), (128, 28), (256, 14), (512, 7)),
    "YOLO": ((16, 80), (32, 80), (64, 40), (64, 20), (128, 20)),
    "PP-OCR": ((16, 160), (32, 120), (96, 60)),
}
"""Channels in and out, and the width of the image."""


def main() -> None:
    options = command_line(__doc__, cpu="native", networks=[""], rounds=15)
    load_intrinsics("llvm")
    vectorize_elementary_functions()
    one_thread()
    heading("CPU, layer | direct, ms | default, ms | ONNX Runtime, ms | of direct | error")
    for network in LAYERS if options.networks == [""] else options.networks:
        for channels, width in LAYERS[network]:
            show(f"{options.cpu}, {network} {channels}x{width}x{width}", channels, width, options)


def show(name: str, channels: int, width: int, options: argparse.Namespace) -> None:
    target = tvm_target(TargetConfig(name="cpu", cpu=options.cpu, threads=1)).target
    case = Case(channels, width, 1, 3)
    proto = model(case)
    with scratch_folder() as folder:
        functions = imported(proto, folder / "m", tvm_target(TargetConfig(name="cpu", threads=1)))
    (function,) = (each for each in functions if "conv2d" in each.name)
    module = function.workload.module
    forms = {
        "direct": with_default_schedule(with_algorithm(module, DIRECT), target),
        "default": with_default_schedule(module, target),
    }
    runs = {n: runner(built_kernel(each, target), case) for n, each in forms.items()}
    medians = in_turn(runs | {"ort": onnx_runtime(proto, case, 1)}, options.rounds)
    ratio = medians["default"] / medians["direct"] if has_tiles(forms["default"]) else 1
    cells = [f"{1000 * medians[each]:.3f}" for each in ("direct", "default", "ort")]
    row(name, *cells, f"{ratio:.2f}", f"{error(forms, case, target):.0e}")


def has_tiles(module: Any) -> bool:
    blocks: list[Any] = []
    structural_walk(module["main"].body, [(SBlock, blocks.append)])
    return any(str(block.name_hint).startswith("winograd") for block in blocks)


def in_turn(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds of processor time of each."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.process_time()
            for _ in range(5):
                run()
            found[name].append((time.process_time() - started) / 5)
    return {name: statistics.median(times) for name, times in found.items()}


def error(forms: dict[str, Any], case: Case, target: Any) -> float:
    """The largest difference of the two forms, of the largest number."""
    image, weights, bias = values(case)
    last = [image.transpose(0, 2, 3, 1), weights.transpose(2, 3, 1, 0), bias.reshape(1, 1, 1, -1)]
    outputs = []
    for module in forms.values():
        kernel = built_kernel(module, target)
        given = [
            tvm.runtime.tensor(np.ascontiguousarray(x)) for x in (*last, np.zeros_like(last[0]))
        ]
        kernel.function["main"](*kernel.arguments(given))
        outputs.append(given[-1].numpy())
    return float(np.abs(outputs[0] - outputs[1]).max() / np.abs(outputs[0]).max())


if __name__ == "__main__":
    main()
