"""One scheduled function, built alone and called with the arguments of its workload."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm.driver import build

from tunegate.compiler.cuda_text import change_texts
from tunegate.compiler.layouts.packing import PREPACK, SplitKernel, split_kernel
from tunegate.compiler.runtime import device_of_kind
from tunegate.system.clock import derive_seed
from tunegate.tune.protocol import TensorArgument


class SingleKernel(NamedTuple):
    """`function` is the compiled module; `kernel` says how constants are packed for it."""

    function: Any
    device: Any
    kernel: SplitKernel

    def arguments(self, operands: Sequence[Any]) -> list[Any]:
        """Returns the arguments of `main` from those of the workload, with constants packed as in a
        build."""
        tensors = {
            "argument": operands,
            "packed": self._pack([operands[n] for n in self.kernel.packs]),
        }
        return [tensors[source.kind][source.place] for source in self.kernel.sources]

    def _pack(self, constants: Sequence[Any]) -> list[Any]:
        kernel, device = self.kernel, self.device
        if kernel.moves is not None:
            values = [move.of(constants[move.argument].numpy()) for move in kernel.moves]
            return [tvm.runtime.tensor(value, device) for value in values]
        buffers = [
            tvm.runtime.empty([int(n) for n in kind.shape.values], str(kind.dtype.dtype), device)
            for kind in kernel.packed_types
        ]
        if constants:
            self.function[PREPACK](*constants, *buffers)
        return buffers


def built_kernel(module: Any, target: Any) -> SingleKernel:
    """Compiles a module whose only function is `main`. Raises what the compiler raises."""
    change_texts()
    kernel = split_kernel(module)
    return SingleKernel(build(kernel.module, target=target), kernel_device(target), kernel)


def kernel_device(target: Any) -> Any:
    return device_of_kind(str(target.kind.name))


# Inputs of candidates: the same values for a whole task of a run, made once per worker.


@lru_cache(maxsize=1)
def sample_inputs(arguments: tuple[TensorArgument, ...], device: Any, seed: int) -> tuple[Any, ...]:
    """Returns tensors on the device. Making the weights of a large layer (hundreds of MB) takes
    longer than building and timing a candidate, so those of the last task are kept until
    `sample_inputs.cache_clear()`."""
    return tuple(
        sample(argument, device, derive_seed(seed, place))
        for place, argument in enumerate(arguments)
    )


def sample(argument: TensorArgument, device: Any, seed: int) -> Any:
    """Returns random values between -1 and 1. Integers are 0: any other index could be out of
    range."""
    if np.dtype(argument.dtype).kind != "f":
        return tvm.runtime.tensor(np.zeros(argument.shape, argument.dtype), device)
    random = np.random.default_rng(seed)
    values = random.random(argument.shape, dtype=np.float32)
    values *= 2
    values -= 1
    return tvm.runtime.tensor(values.astype(argument.dtype, copy=False), device)
