"""What kernels take on the device of this process."""

from __future__ import annotations

import ctypes
import statistics
import time
from typing import Any

import numpy as np
import tvm

from tunegate.edges.metaschedule.persistent.kernel_timer import TimedText
from tunegate.edges.metaschedule.persistent.launching_module import device_module
from tunegate.edges.native.program import NativeProgram
from tunegate.errors import NotOfferedError
from tunegate.whole_model.contexts import WayTimes

_ROUNDS = 5
_LAUNCHES = 20


class DeviceTimer:
    """Launches each kernel again and again: the median of rounds, each of several launches, so that
    the host's share hardly counts. Inputs are zeros."""

    def __init__(self, target: Any) -> None:
        self._target, self._device = target, tvm.cuda()

    def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
        names = tuple(kernels.compiled.figures)
        tensors = self._tensors(program, kernels.arena_bytes)
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        grid = self._device.multi_processor_count * kernels.context.blocks_each
        size = (grid, kernels.context.threads)
        cubin, count = kernels.compiled.cubin, len(pointers)
        try:
            module = device_module(kernels.text, cubin, names, count, self._target)
            return {name: self._timed(module[name], (*pointers, *size)) for name in names}
        except RuntimeError as error:
            said = str(error).strip().splitlines()[-1][:200]
            raise NotOfferedError(f"its kernel does not run ({said})") from error

    def _timed(self, kernel: Any, arguments: tuple[Any, ...]) -> float:
        kernel(*arguments)
        self._device.sync()
        rounds = []
        for _ in range(_ROUNDS):
            began = time.perf_counter()
            for _ in range(_LAUNCHES):
                kernel(*arguments)
            self._device.sync()
            rounds.append((time.perf_counter() - began) / _LAUNCHES * 1e3)
        return statistics.median(rounds)

    def _tensors(self, program: NativeProgram, arena_bytes: int) -> list[Any]:
        """What a kernel takes, in the order of its parameters."""
        inputs, outputs = (
            [np.zeros(each.buffer.size_bytes, np.uint8) for each in tensors]
            for tensors in (program.inputs, program.outputs)
        )
        weights = np.frombuffer(program.weights or b"\0", np.uint8)
        every = (*inputs, np.zeros(arena_bytes, np.uint8), weights, *outputs)
        return [tvm.runtime.tensor(each, self._device) for each in every]
