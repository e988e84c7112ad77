"""Errors of each scheduled kernel against its default schedule, on the model's own intermediate
values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm.runtime.vm import VMInstrumentReturnKind

from tunegate.edges.metaschedule.passes.prepacking import MAIN
from tunegate.edges.metaschedule.runtime import watched_machine
from tunegate.edges.metaschedule.single_kernel import SingleKernel
from tunegate.edges.reference.tolerance import errors


class KernelError(NamedTuple):
    """The largest error of a kernel, and the same relative to its largest output there."""

    name: str
    absolute: float
    relative: float


def kernel_errors(
    library: Path, kernels: Mapping[str, SingleKernel], feeds: Iterable[Sequence[Any]], device: Any
) -> list[KernelError]:
    """Runs a library of default schedules on the feeds, and beside each call of a kernel that
    kernel. Returns the errors, the largest first by the relative one."""
    beside = _Beside(kernels, device)
    machine = watched_machine(library, device, beside.instrument)
    for arguments in feeds:
        machine["main"](*arguments)
    return sorted(beside.found.values(), key=lambda error: (-error.relative, error.name))


class _Beside:
    def __init__(self, kernels: Mapping[str, SingleKernel], device: Any) -> None:
        self._kernels, self._device = kernels, device
        self.found: dict[str, KernelError] = {}

    def instrument(
        self, _: object, name: str, before: bool, __: object, *arguments: Any
    ) -> VMInstrumentReturnKind:
        kernel = self._kernels.get(name)
        if kernel is not None and not before:
            self._device.sync()
            self._enter(name, *_compared(kernel, arguments, self._device))
        return VMInstrumentReturnKind.NO_OP

    def _enter(self, name: str, absolute: float, relative: float) -> None:
        known = self.found.get(name, KernelError(name, 0.0, 0.0))
        self.found[name] = KernelError(
            name, max(known.absolute, absolute), max(known.relative, relative)
        )


def _compared(kernel: SingleKernel, arguments: Sequence[Any], device: Any) -> tuple[float, float]:
    *_, expected = arguments
    given = [*arguments[:-1], tvm.runtime.tensor(np.zeros_like(expected.numpy()), device)]
    kernel.function[MAIN](*kernel.arguments(given))
    device.sync()
    return errors(given[-1].numpy().astype("float64"), expected.numpy().astype("float64"))
