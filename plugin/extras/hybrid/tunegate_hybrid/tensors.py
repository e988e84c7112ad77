"""The tensors of one inference as its parts hand them on: one memory, seen by both runtimes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm

from tunegate_hybrid.plan_file import PartTensor

_ALIGNMENT = 64
"""The bytes that compiled code takes tensors to begin at a multiple of."""


class Tensors:
    """What has been computed so far, by name: `arrays` for ONNX Runtime and `compiled` for kernels.
    Where a tensor is in both it is the same memory."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.compiled: dict[str, Any] = {}

    def room_for(self, tensor: PartTensor) -> Any:
        """Returns memory for a tensor of a known shape, kept from inference to inference."""
        array = _aligned(tensor.shape or (), np.dtype(tensor.dtype))
        self.put(tensor.name, array)
        return array

    def put(self, name: str, array: Any) -> None:
        """Takes an array in, without a copy where compiled code can read it as it lies."""
        self.arrays[name] = array
        if array.dtype.kind in "fiub":
            self.compiled[name] = tvm.runtime.from_dlpack(_readable(array))

    def put_compiled(self, name: str, tensor: Any) -> None:
        """Takes the output of a kernel in, without a copy."""
        self.compiled[name] = tensor
        self.arrays[name] = np.from_dlpack(tensor)


def _aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _readable(array: Any) -> Any:
    is_fit = array.flags.c_contiguous and array.flags.writeable
    if is_fit and array.ctypes.data % _ALIGNMENT == 0:
        return array
    copy = _aligned(array.shape, array.dtype)
    copy[...] = array
    return copy
