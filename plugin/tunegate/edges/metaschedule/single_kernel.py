"""One scheduled function, built by itself and called with the arguments of its workload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tvm
from tvm.driver import build

from tunegate.edges.metaschedule.passes.prepacking import PREPACK, SplitKernel, split_kernel
from tunegate.edges.metaschedule.runtime import device_of_kind


class SingleKernel(NamedTuple):
    """`function` is the compiled module; `kernel` says how constants are packed for it."""

    function: Any
    device: Any
    kernel: SplitKernel

    def arguments(self, given: Sequence[Any]) -> list[Any]:
        """The arguments of `main`, from those of the workload: constants are packed, as they are in
        a build."""
        found = {"argument": given, "packed": self._packed([given[n] for n in self.kernel.packs])}
        return [found[source.kind][source.place] for source in self.kernel.sources]

    def _packed(self, constants: Sequence[Any]) -> list[Any]:
        kernel, device = self.kernel, self.device
        if kernel.moves is not None:
            moved = [move.of(constants[move.argument].numpy()) for move in kernel.moves]
            return [tvm.runtime.tensor(value, device) for value in moved]
        packed = [
            tvm.runtime.empty([int(n) for n in kind.shape.values], str(kind.dtype.dtype), device)
            for kind in kernel.packed
        ]
        if constants:
            self.function[PREPACK](*constants, *packed)
        return packed


def built_kernel(module: Any, target: Any) -> SingleKernel:
    """Compiles a module with one scheduled function, `main`. Raises what the compiler raises."""
    kernel = split_kernel(module)
    return SingleKernel(build(kernel.module, target=target), kernel_device(target), kernel)


def kernel_device(target: Any) -> Any:
    return device_of_kind(str(target.kind.name))
