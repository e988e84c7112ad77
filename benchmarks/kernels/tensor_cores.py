"""Products in float16 and TF32 on tensor cores: the time of each tile, and the one that analysis
picks.

    python -m benchmarks.kernels.tensor_cores [--rounds 20] [--number 20] [--cases "64 x 64 x 64"]

Kernels of an encoder (384 wide, 128 tokens) and of ResNet-50, batch 1, each alone: the least of the
rounds, of so many launches each, by TVM's timer of the device, in microseconds. `chosen / best`
says what the analysis costs. A stand-in for a device has time for the smallest case alone.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tests.compiler.low_precision.product_kernels import Fused, activations, matrices
from tests.compiler.low_precision.tensor_core_kernels import compiled, convolution, lowered

from benchmarks.kit.command import Choice, command_line
from benchmarks.kit.tables import heading, row
from tunegate.compiler.cuda_text import change_texts
from tunegate.compiler.low_precision import tensor_cores
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.tune.gpu_analysis import card_of

CASES: dict[str, Callable[[], Fused]] = {
    "128 x 384 x 384": lambda: matrices((128,), 384, 384),
    "128 x 384 x 1536": lambda: matrices((128,), 384, 1536),
    "128 x 1536 x 384": lambda: matrices((128,), 1536, 384),
    "scores, 12 of 128 x 32 x 128": lambda: activations((1, 12), 128, 32, 128),
    "1x1, 56 x 56, 64 to 256": lambda: convolution((1, 64, 56, 56), (256, 64, 1, 1)),
    "3x3, 28 x 28, 128 to 128": lambda: convolution((1, 128, 28, 28), (128, 128, 3, 3), padding=1),
    "3x3, 14 x 14, 256 to 256": lambda: convolution((1, 256, 14, 14), (256, 256, 3, 3), padding=1),
    "1024 x 1024 x 1024": lambda: matrices((1024,), 1024, 1024),
}
SMALLEST = {"64 x 64 x 64": lambda: matrices((64,), 64, 64)}


def main() -> None:
    options = command_line(__doc__, rounds=20, number=20, cases=Choice(CASES | SMALLEST, [*CASES]))
    os.environ.update(cuda_variables())
    change_texts()
    device = tvm.cuda()
    for precision, tiles in tensor_cores.TILES.items():
        if int(device.compute_version.replace(".", "")) < tiles[0].factors.least_capability:
            continue
        names = [f"{each.rows} x {each.columns}" for each in tiles]
        told = " | ".join((precision, *names, "chosen", "chosen / best"))
        heading(told, words=(0, len(names) + 1))
        for case in options.cases:
            make = (CASES | SMALLEST)[case]
            times = times_us(make(), tiles, device, options.rounds, options.number)
            chosen = chosen_tile(make(), precision, device)
            ratio = times[chosen] / min(times)
            row(case, *(f"{each:.1f}" for each in times), names[chosen], f"{ratio:.2f}")
        print()


def architecture(device: Any) -> str:
    return "sm_" + str(device.compute_version).replace(".", "")


def chosen_tile(kernel: Fused, precision: str, device: Any) -> int:
    product = tensor_cores.matrix_product(kernel.function)
    assert product is not None
    best = tensor_cores.best_tiles(product, card_of(architecture(device)), precision)
    return tensor_cores.TILES[precision].index(best)


def times_us(
    kernel: Fused, tiles: Sequence[tensor_cores.Tiles], device: Any, rounds: int, number: int
) -> list[float]:
    found = []
    for each in tiles:
        lower = lowered(kernel, each)
        shape = [int(extent) for extent in kernel.function.params[-1].shape]
        arguments = [*lower.packed_arguments(), np.zeros(shape, np.float32)]
        tensors = [tvm.runtime.tensor(argument, device) for argument in arguments]
        built = compiled(lower, architecture(device))
        timer = built.time_evaluator("main", device, number=number, repeat=1)
        found.append(min(timer(*tensors).mean for _ in range(rounds)) * 1e6)
    return found


if __name__ == "__main__":
    main()
