"""Functions of many numbers: by calls of the C library, as LLVM compiles
them, and as ours, in vectors.

    python -m benchmarks.kernels.elementary_functions [--rounds 7]

One thread, 128 x 1024 numbers with a standard deviation of 2, no schedule (loops as they are
written); both kernels timed in turn. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import relax

from benchmarks.kit.averages import paired
from benchmarks.kit.command import command_line
from benchmarks.kit.models import TARGET, one_thread
from benchmarks.kit.tables import heading, row
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.compiler.targets import tvm_target

SHAPE = (128, 1024)


def gelu(x: Any) -> Any:
    half, one, root = (relax.const(np.float32(value)) for value in (0.5, 1.0, 2**-0.5))
    inner = relax.op.add(relax.op.erf(relax.op.multiply(x, root)), one)
    return relax.op.multiply(relax.op.multiply(x, inner), half)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": relax.op.exp,
    "tanh": relax.op.tanh,
    "sigmoid": relax.op.sigmoid,
    "log of 1 + exp": lambda x: relax.op.log(
        relax.op.add(relax.op.exp(x), relax.const(np.float32(1)))
    ),
    "cube, by pow": lambda x: relax.op.power(x, relax.const(np.float32(3))),
    "GELU": gelu,
    "softmax": relax.op.nn.softmax,
}


def main() -> None:
    options = command_line(__doc__, rounds=7)
    one_thread()
    library = {name: compiled(function) for name, function in FUNCTIONS.items()}
    vectorize_elementary_functions()
    ours = {name: compiled(function) for name, function in FUNCTIONS.items()}
    values = np.random.default_rng(0).normal(0, 2, SHAPE).astype("float32")
    heading("128 x 1024 numbers | library, ms | vectors, ms | ratio | largest difference")
    for name in FUNCTIONS:
        both = (partial(ms, made[name], values) for made in (library, ours))
        first, second, ratio = paired(both, options.rounds)
        apart = difference(result(library[name], values), result(ours[name], values))
        row(name, f"{first:.3f}", f"{second:.3f}", f"{ratio:.1f}x", f"{apart:.1e}")


def compiled(function: Callable[[Any], Any]) -> Any:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(function(x)))
        builder.emit_func_output(out)
    target = tvm_target(TARGET).target
    with target:
        module = relax.get_pipeline("zero")(builder.get())
    return relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())


def ms(machine: Any, values: Any) -> float:
    timed = machine.time_evaluator("main", tvm.cpu(), number=20, repeat=3)
    return float(np.median(timed(tvm.runtime.tensor(values)).results)) * 1e3


def difference(theirs: Any, ours: Any) -> float:
    """The largest difference; that of numbers over 1 is relative to them."""
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max())


def result(machine: Any, values: Any) -> Any:
    return machine["main"](tvm.runtime.tensor(values)).numpy()


if __name__ == "__main__":
    main()
