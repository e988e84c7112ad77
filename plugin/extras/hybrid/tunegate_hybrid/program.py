"""An artifact of parts, in this process: they run one after the other, on each other's memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from tunegate.compiler.runtime import machine_of
from tunegate.models.reference.part_session import opened_part
from tunegate_hybrid.plan_file import PartsPlan, PlannedPart
from tunegate_hybrid.steps import PartStep, compiled_step, onnx_step
from tunegate_hybrid.tensors import Tensors


class PartsProgram:
    """The parts are opened once; every `bound` has memory of its own."""

    def __init__(self, directory: Path, plan: PartsPlan, threads: int) -> None:
        self._plan = plan
        device = tvm.cpu()
        self._opened = [
            machine_of(directory / part.file, device)
            if part.is_compiled
            else opened_part(directory / part.file, threads)
            for part in plan.parts
        ]

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the outputs as arrays that nothing else writes to."""
        outputs: Sequence[Any] = self.bound(feed)()
        return [np.array(each) if isinstance(each, np.ndarray) else each for each in outputs]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], list[Any]]:
        """Returns an inference whose outputs are overwritten by the next."""
        tensors, steps = self._bound(feed)
        arrays, names = tensors.arrays, self._plan.outputs

        def run() -> list[Any]:
            for step in steps:
                step()
            return [arrays[name] for name in names]

        return run

    def feeds(self, feed: Mapping[str, Any]) -> list[tuple[PlannedPart, dict[str, Any]]]:
        """Returns each part with what goes into it in one inference."""
        tensors, steps = self._bound(feed)
        for step in steps:
            step()
        found = tensors.arrays
        return [
            (part, {tensor.name: np.array(found[tensor.name]) for tensor in part.inputs})
            for part in self._plan.parts
        ]

    def _bound(self, feed: Mapping[str, Any]) -> tuple[Tensors, list[PartStep]]:
        tensors = Tensors()
        for name, array in feed.items():
            tensors.put(name, np.asarray(array))
        return tensors, [
            (compiled_step if part.is_compiled else onnx_step)(part, opened, tensors)
            for part, opened in zip(self._plan.parts, self._opened, strict=True)
        ]
