"""Small models, opened for a GPU that is not there, and run as the text of their kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from tests.support.models.transformer import transformer
from tests.support.small_onnx import chain_model, conv_model, save

from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate_whole_model.persistent.kernel_text import kernel_text
from tunegate_whole_model.persistent.launching_module import WHOLE_KERNEL
from tunegate_whole_model.persistent.stage_program import (
    StageProgram,
    WholeModel,
    stage_program,
)
from tunegate_whole_model.persistent.ways import Scheduled, whole_model
from tunegate_whole_model.stages.contexts import Context
from whole_model_tests.cuda_blocks import SimulatedKernel

TARGET = tvm_target(TargetConfig(name="gpu", kind="cuda", arch="sm_80")).target
MODELS = {
    "conv": lambda: conv_model(channels=8, out=8, size=8),
    "chain": lambda: chain_model(layers=3, width=64),
    "transformer": lambda: transformer(sequence=8),
}


class Opened(NamedTuple):
    """A model and what its kernels are made of."""

    model: onnx.ModelProto
    scheduled: Scheduled

    def at(self, threads: int) -> WholeModel:
        names = [
            [v.name for v in each] for each in (self.model.graph.input, self.model.graph.output)
        ]
        return whole_model(self.scheduled, (names[0], names[1]), TARGET, threads)


@cache
def open_model(name: str) -> Opened:
    model = MODELS[name]()
    with TemporaryDirectory() as directory:
        file = save(model, Path(directory) / "m.onnx")
        prepared = prepare(file, shapes={}, into=Path(directory) / "p", path=name)
        module = import_in_layout(prepared, TARGET, name, ("nchw",))
    return Opened(model, Scheduled(module, module))


@cache
def whole(name: str, threads: int) -> WholeModel:
    return open_model(name).at(threads)


def staged(model: WholeModel, way: str, threads: int) -> StageProgram:
    """All kernels in one way, or in the first of those that do not have it."""
    picks = {s: ways.get(way) or next(iter(ways.values())) for s, ways in model.ways.items()}
    return stage_program(model.program, picks, threads)


def text_of(model: WholeModel, stages: StageProgram, context: Context, head: str = "") -> str:
    counts = len(model.program.inputs), len(model.program.outputs)
    return kernel_text(head, {WHOLE_KERNEL: stages}, *counts, context)


class Runner:
    """The kernel beside ONNX Runtime. The arena begins with numbers that are none."""

    def __init__(
        self, name: str, way: str, threads: int, into: Path, *, grid: int, patience: int = 10**8
    ) -> None:
        self.model, self.grid = whole(name, threads), grid
        self.stages = staged(self.model, way, threads)
        text = text_of(self.model, self.stages, Context(1, threads))
        program = self.model.program
        count = len(program.inputs) + len(program.outputs) + 2
        self._kernel = SimulatedKernel(text, [WHOLE_KERNEL], count, threads, into, patience)
        self._session = onnxruntime.InferenceSession(open_model(name).model.SerializeToString())

    def outputs(self, blocks: int | None = None) -> tuple[bool, Sequence[Any], Sequence[Any]]:
        """Returns True where it ended well, then its outputs, then the right ones."""
        draw = np.random.default_rng(3)
        feed = {
            each.name: draw.standard_normal(each.shape).astype(np.float32)
            for each in self._session.get_inputs()
        }
        wanted = self._session.run(None, feed)
        made = [np.full_like(each, np.nan) for each in wanted]
        arena = np.full(self.stages.arena_bytes, 255, np.uint8)
        weights = np.frombuffer(self.model.program.weights or b"\0", np.uint8).copy()
        buffers = [*feed.values(), arena, weights, *made]
        return self._kernel.run(WHOLE_KERNEL, buffers, self.grid, blocks), made, wanted
