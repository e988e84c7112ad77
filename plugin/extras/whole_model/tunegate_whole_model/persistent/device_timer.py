"""Times kernels on this machine's device, in a child that may die of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate.errors import NotOfferedNowError
from tunegate.system.processes.child import Child
from tunegate.system.processes.conversations import Conversation, converse
from tunegate.system.processes.memory_limit import memory_limit
from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.persistent.kernel_timer import TimedText
from tunegate_whole_model.persistent.timing_child import KernelTimes, TimeKernels
from tunegate_whole_model.stages.contexts import WayTimes

_CHILD = "tunegate_whole_model.persistent.timing_child"
_MAX_SECONDS = 600.0
_MOST_DEATHS = 2
"""The deaths after which no further text is tried."""


class DeviceTimer:
    """Times kernels for a target in one child after another: a new one if the last has died.
    `scratch` is a directory for the weights and the children's output; `variables` are CUDA's.
    `close` it."""

    def __init__(self, target: Any, scratch: Path, variables: Mapping[str, str]) -> None:
        self._target, self._scratch, self._variables = target, scratch, variables
        self._child: Child[KernelTimes] | None = None
        self._weights: bytes | None = None
        self._deaths: list[str] = []

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None

    def milliseconds(self, program: NativeProgram, kernels: TimedText) -> WayTimes:
        if len(self._deaths) >= _MOST_DEATHS:
            raise NotOfferedNowError(self._deaths[-1])
        talk = Conversation(self._living_child, self._request(program, kernels))
        converse([talk], at_once=1, limit_seconds=_MAX_SECONDS)
        if talk.died is not None:
            self._child = None
            self._deaths.append(f"the process that times its kernels {talk.died}")
            raise NotOfferedNowError(self._deaths[-1])
        return talk.replies[0].milliseconds

    def _living_child(self) -> Child[KernelTimes]:
        if self._child is None:
            self._child = Child(
                _CHILD,
                KernelTimes,
                variables=self._variables,
                memory=memory_limit("cuda"),
                log=self._scratch / "device-timer.log",
            )
        return self._child

    def _request(self, program: NativeProgram, kernels: TimedText) -> TimeKernels:
        return TimeKernels(
            text=kernels.text,
            cubin=kernels.compiled.cubin,
            names=tuple(kernels.compiled.figures),
            inputs_bytes=tuple(each.buffer.size_bytes for each in program.inputs),
            arena_bytes=kernels.arena_bytes,
            weights=str(self._weights_file(program.weights)),
            outputs_bytes=tuple(each.buffer.size_bytes for each in program.outputs),
            blocks_each=kernels.context.blocks_each,
            threads=kernels.context.threads,
            target_json=str(self._target),
        )

    def _weights_file(self, weights: bytes) -> Path:
        file = self._scratch / "timed-weights"
        if self._weights != weights:
            file.write_bytes(weights)
            self._weights = weights
        return file
