"""Programs put together of parts: each compiled once, in whatever programs it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tunegate.compiler.opening import OpenModel
from tunegate.errors import UnsupportedModelError
from tunegate.models.saved_model import save
from tunegate.tune.compiler_protocol import Built
from tunegate_hybrid.open_parts import SplitModel
from tunegate_hybrid.partition import ModelPart
from tunegate_hybrid.plan_file import PartsPlan, PartTensor, PlannedPart
from tunegate_hybrid.program import PartsProgram


class CompiledPart(NamedTuple):
    """A part's library, and what is said of its building."""

    library: Path
    built: Built


Link = Callable[[OpenModel, Path], CompiledPart]
"""Builds an opened part in a directory."""


class Assembly:
    """The parts of one model; `threads` run them, and `scratch` is a private directory."""

    def __init__(self, split: SplitModel, link: Link, scratch: Path, threads: int) -> None:
        self._split, self._link, self._scratch = split, link, scratch
        self._threads = threads
        self._compiled: dict[tuple[int, ...], CompiledPart] = {}

    def compiled(self, part: ModelPart) -> CompiledPart:
        """Returns the part with its kernels linked. Raises UnsupportedModelError where the compiler
        does not take it by itself."""
        if part.nodes not in self._compiled:
            self._compiled[part.nodes] = self._built(part)
        return self._compiled[part.nodes]

    def program(self, parts: Sequence[ModelPart], outputs: Sequence[str], at: Path) -> PartsProgram:
        """Writes the parts and their plan into a directory, and opens them."""
        at.mkdir(parents=True, exist_ok=True)
        planned = [self._planned(part, number, at) for number, part in enumerate(parts)]
        plan = PartsPlan(parts=tuple(planned), outputs=tuple(outputs))
        plan.write(at)
        return PartsProgram(at, plan, self._threads)

    def scratch(self, name: str) -> Path:
        """Returns a directory that lasts as long as the request."""
        return self._scratch / name

    def _built(self, part: ModelPart) -> CompiledPart:
        opened = self._split.opener.opened(part.nodes)
        if opened is None:
            raise UnsupportedModelError(self._split.reason)
        return self._link(opened, self.scratch(f"compiled-{len(self._compiled)}"))

    def _planned(self, part: ModelPart, number: int, directory: Path) -> PlannedPart:
        file = f"part-{number}.so" if part.is_compiled else f"part-{number}.onnx"
        tasks = []
        if part.is_compiled:
            compiled = self.compiled(part)
            shutil.copyfile(compiled.library, directory / file)
            tasks = [{"function": f.function, "name": f.name} for f in compiled.built.functions]
        else:
            save(self._split.graph.cut(part), directory / file)
        return PlannedPart(
            is_compiled=part.is_compiled,
            file=file,
            inputs=tuple(map(self._tensor, part.inputs)),
            outputs=tuple(map(self._tensor, part.outputs)),
            tasks=tuple(tasks),
        )

    def _tensor(self, name: str) -> PartTensor:
        found = self._split.graph.type_of(name)
        return PartTensor(name, found.dtype, found.shape)
