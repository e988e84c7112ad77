"""Products and convolutions as TVM's candidates in bfloat16 and int8 ship them, beside float32.

    python -m benchmarks.kernels.narrow_products [--rounds 9]

The cases of `low_precision.py`, one thread, in turn: medians of processor time. A kernel rounds its
image, in int8 by the range that it has first looked for, multiplies by tiles or by vectors, and
leaves float32. Those by vectors are compiled for processors without tiles. TVM's float32 has one
schedule by hand. Prints the table of docs/benchmarks: GFLOP/s, a column for each instruction
that the processor has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tests.compiler.low_precision.product_kernels import convolution

from benchmarks.kernels.low_precision import CASES, Candidate, drawn, in_turn, ours
from benchmarks.kit.command import command_line
from benchmarks.kit.dot_products import DOTS, Case
from benchmarks.kit.models import one_thread
from benchmarks.kit.peers import onnx_runtime
from benchmarks.kit.tables import heading, row
from tunegate.compiler.low_precision.product import RowsOfTiles, product_of
from tunegate.compiler.low_precision.tile_kernel import tile_kernel
from tunegate.compiler.low_precision.tile_numbers import NUMBERS, TileNumbers, pack_weights
from tunegate.system.machine.cores import lacks_some

CPUS = {
    "tdpbf16ps": "sapphirerapids",
    "tdpbusd": "sapphirerapids",
    "vdpbf16ps": "cooperlake",
    "vpdpbusd": "cascadelake",
}


def main() -> None:
    options = command_line(__doc__, rounds=9)
    one_thread()
    known = [each for of in NUMBERS.values() for each in of if not lacks_some(each.flags)]
    table = {}
    for case in CASES:
        image, weights = drawn(case)
        found = {
            "TVM float32": ours(case, DOTS["float32, vectors"], image, weights),
            "ONNX Runtime float32": Candidate(*onnx_runtime(case, image, weights, "float32")),
        }
        for each in known:
            name = f"TVM {each.precision}, {each.multiply}"
            found[name] = shipped(case, each, image, weights)
        for candidate in found.values():
            candidate.run()
        medians = in_turn(found, options.rounds)
        table[case.name] = {n: case.floating_operations / s / 1e9 for n, s in medians.items()}
    heading(" | ".join(("GFLOP/s", *next(iter(table.values())))))
    for name, speeds in table.items():
        row(name, *(f"{speed:.0f}" for speed in speeds.values()))


def shipped(case: Case, numbers: TileNumbers, image: Any, weights: Any) -> Candidate:
    """The kernel of a convolution without stages; a product has an image of one column."""
    shape = (1, case.height, case.width, case.depth)
    taps = (case.taps, case.taps, case.depth, case.out)
    fused = convolution(shape, taps, stages=False, padding=case.taps // 2)
    product = product_of(fused.function)
    if product is None:
        raise ValueError(case.name)
    kernel = tile_kernel(product, fused.function, 1, numbers).with_attr("global_symbol", "main")
    rows = RowsOfTiles(product.shape, numbers.depth)
    arrays = [image.reshape(shape)] * (product.weights + 1)
    arrays[product.weights] = pack_weights(weights.reshape(taps), rows, numbers)
    result = np.zeros((1, case.height, case.width, case.out), "float32")
    features = [f"+{each}" for each in sorted(numbers.features)]
    target = {"kind": "llvm", "mcpu": CPUS[numbers.multiply], "mattr": features}
    compiled = tvm.compile(kernel, target=tvm.target.Target(target))["main"]
    tensors = [tvm.runtime.tensor(each) for each in (*arrays, result)]
    return Candidate(lambda: compiled(*tensors), tensors[-1].numpy)


if __name__ == "__main__":
    main()
