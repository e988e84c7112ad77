"""The port of the device on which a kernel's ways are timed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.persistent.nvrtc import CompiledKernels
from tunegate_whole_model.stages.contexts import Context, WayTimes


class TimedText(NamedTuple):
    """Kernels that take a program's inputs, arena, weights and outputs."""

    text: str
    compiled: CompiledKernels
    arena_bytes: int
    context: Context


class KernelTimer(Protocol):
    """The port of the device."""

    def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
        """Returns the time of each kernel by name. Raises NotOfferedNowError if the process
        that times them dies, of one of them or for another reason."""
        ...
