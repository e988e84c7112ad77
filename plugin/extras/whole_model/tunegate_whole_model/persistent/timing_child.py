"""The child that times kernels on its device. It may die of one: a device error is permanent, and
everything its process does there fails from then on."""

from __future__ import annotations

import ctypes
import json
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tvm

from tunegate_whole_model.persistent.launching_module import device_module

_ROUNDS, _LAUNCHES = 5, 20
_ROUND_SECONDS = 0.01
"""The time after which a round needs no more launches."""


class TimeKernels(msgspec.Struct, frozen=True, kw_only=True):
    """Kernels of one text, by `names`, each of which takes all inputs, the arena, the weights and
    all outputs, of these sizes in bytes. The file `weights` has their values. The grid is
    `blocks_each` per multiprocessor, of so many `threads`."""

    text: str
    cubin: bytes
    names: tuple[str, ...]
    inputs_bytes: tuple[int, ...]
    arena_bytes: int
    weights: str
    outputs_bytes: tuple[int, ...]
    blocks_each: int
    threads: int
    target_json: str


class KernelTimes(msgspec.Struct, frozen=True):
    milliseconds: dict[str, float]


Request = TimeKernels


def handle_request(request: TimeKernels) -> KernelTimes:
    """Returns the median of rounds for each kernel, each of several launches, so that the host's
    share hardly counts. Raises the device's error."""
    device = tvm.cuda()
    memory = _Memory(request, device)
    target = tvm.target.Target(json.loads(request.target_json))
    count = len(memory.pointers)
    module = device_module(request.text, request.cubin, request.names, count, target)
    grid = device.multi_processor_count * request.blocks_each
    arguments = (*memory.pointers, grid, request.threads)
    found = {}
    for name in request.names:
        memory.clear()
        found[name] = _median_ms(module[name], arguments, device)
    return KernelTimes(found)


class _Memory:
    """A kernel's arguments, in parameter order. Zero is a valid index wherever one is read;
    leftovers of another kernel may not be."""

    def __init__(self, request: TimeKernels, device: Any) -> None:
        inputs, (arena, *outputs) = (
            [tvm.runtime.tensor(np.zeros(size, np.uint8), device) for size in sizes]
            for sizes in (request.inputs_bytes, (request.arena_bytes, *request.outputs_bytes))
        )
        file = Path(request.weights)
        weights = np.fromfile(file, np.uint8) if file.stat().st_size else np.zeros(1, np.uint8)
        self._written = (arena, *outputs)
        self._zeros = [
            tvm.runtime.tensor(np.zeros(each.shape, np.uint8), device) for each in self._written
        ]
        self._all = [*inputs, arena, tvm.runtime.tensor(weights, device), *outputs]
        self.pointers = tuple(ctypes.c_void_p(each.data_ptr()) for each in self._all)

    def clear(self) -> None:
        """Sets what kernels write to zero again."""
        for written, zeros in zip(self._written, self._zeros, strict=True):
            zeros.copyto(written)


def _median_ms(kernel: Any, arguments: tuple[Any, ...], device: Any) -> float:
    kernel(*arguments)
    device.sync()
    seconds = _seconds(kernel, arguments, device, 1)
    launches = max(1, min(_LAUNCHES, round(_ROUND_SECONDS / seconds)))
    rounds = (_seconds(kernel, arguments, device, launches) for _ in range(_ROUNDS))
    return statistics.median(rounds) / launches * 1e3


def _seconds(kernel: Any, arguments: tuple[Any, ...], device: Any, launches: int) -> float:
    began = time.perf_counter()
    for _ in range(launches):
        kernel(*arguments)
    device.sync()
    return time.perf_counter() - began
