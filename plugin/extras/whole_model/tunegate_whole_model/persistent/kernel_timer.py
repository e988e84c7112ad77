"""The port of the device on which the ways to do a kernel are timed."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.persistent.nvrtc import CompiledKernels
from tunegate_whole_model.stages.contexts import Context, WayTimes


class TimedText(NamedTuple):
    """Kernels that take inputs, arena, weights and outputs of a program."""

    text: str
    compiled: CompiledKernels
    arena_bytes: int
    context: Context


class KernelTimer(Protocol):
    """The port of the device."""

    def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
        """Returns what each kernel takes, by its name. Raises NotOfferedError where one does not
        run."""
        ...
