"""A model that the compiler cannot take whole: the parts that it can, each opened as a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import onnx

from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.models.prepared import Compilable, PreparedModel, Tensor
from tunegate.edges.models.saved_model import save
from tunegate.edges.models.split.model_graph import ModelGraph
from tunegate.edges.models.split.partition import ModelPart, part_of, partition
from tunegate.edges.reference.value_types import value_types
from tunegate.errors import UnsupportedModelError

LEAST_WORK = 2e5
"""The operations that are worth a crossing: some 10 microseconds of a slow core."""
_FEW = 4
"""The number of nodes that are not looked at more closely where they fail together only."""
_MOST_PARTS = 32
"""The number of parts that are tried until what is left is taken as refused."""

OpenPart = Callable[[PreparedModel], OpenModel]


class SplitModel(NamedTuple):
    """The parts in the order in which they run, and those that are compiled, opened; `reason` is
    why the model is not compiled whole."""

    prepared: PreparedModel
    graph: ModelGraph
    parts: tuple[ModelPart, ...]
    opened: dict[ModelPart, OpenModel]
    reason: str

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.graph.outputs

    @property
    def functions(self) -> list[ModelFunction]:
        return [function for each in self.opened.values() for function in each.functions]


def split_model(
    prepared: PreparedModel, open_part: OpenPart, into: Path, reason: str
) -> SplitModel:
    """Raises UnsupportedModelError with the reason where no part is worth compiling."""
    try:
        proto = onnx.load(prepared.optimized)
        splitting = _Splitting(ModelGraph(proto, value_types(proto)), open_part, into)
        parts = splitting.parts()
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class.
        raise UnsupportedModelError(reason) from error
    opened = {part: found for part in parts if (found := splitting.opened(part)) is not None}
    if not opened:
        raise UnsupportedModelError(reason)
    return SplitModel(prepared, splitting.graph, parts, opened, reason)


class _Splitting:
    """What the compiler takes is found out by asking it, and asked once."""

    def __init__(self, graph: ModelGraph, open_part: OpenPart, into: Path) -> None:
        self.graph = graph
        self._open_part, self._into = open_part, into
        self._found: dict[tuple[int, ...], OpenModel | None] = {}
        self._count = 0

    def parts(self) -> tuple[ModelPart, ...]:
        """The parts when every compiled one has been opened."""
        candidates = self.graph.of_static_shapes()
        compilable = candidates - set(self._refused_alone(candidates))
        while True:
            parts = partition(self.graph.nodes, compilable, self.graph.outputs, LEAST_WORK)
            wanted = [part for part in parts if part.is_compiled]
            refused = {place for part in wanted for place in self._refused(part.nodes)}
            if not refused:
                return parts
            compilable -= refused

    def opened(self, part: ModelPart) -> OpenModel | None:
        """Returns the part, opened; None where it is not to be compiled."""
        return self._opened(part.nodes) if part.is_compiled else None

    def _refused_alone(self, places: Iterable[int]) -> Iterator[int]:
        """The nodes that are refused by themselves; nodes of a kind are asked about once."""
        answers: dict[tuple[object, ...], bool] = {}
        for place in sorted(places):
            kind = self.graph.kind_of(place)
            if kind not in answers:
                answers[kind] = self._open((place,)) is None
            if answers[kind]:
                yield place

    def _refused(self, nodes: tuple[int, ...]) -> Iterator[int]:
        """The nodes without which the compiler takes the rest, by halves; more than those, where
        only together they are too much for it."""
        if self._opened(nodes) is not None:
            return
        if len(nodes) <= _FEW or len(self._found) >= _MOST_PARTS:
            yield from nodes
            return
        middle = len(nodes) // 2
        halves = nodes[:middle], nodes[middle:]
        if all(self._opened(half) is not None for half in halves):
            yield nodes[middle]
            return
        for half in halves:
            yield from self._refused(half)

    def _opened(self, nodes: tuple[int, ...]) -> OpenModel | None:
        if nodes not in self._found:
            self._found[nodes] = self._open(nodes)
        return self._found[nodes]

    def _open(self, nodes: tuple[int, ...]) -> OpenModel | None:
        part = part_of(self.graph.nodes, nodes, self.graph.outputs)
        try:
            return self._open_part(self._saved(part))
        except (UnsupportedModelError, ValueError):
            return None

    def _saved(self, part: ModelPart) -> PreparedModel:
        self._count += 1
        file = self._into / f"{self._count}.onnx"
        self._into.mkdir(parents=True, exist_ok=True)
        save(self.graph.cut(part), file)
        return PreparedModel(
            original=file,
            weights=None,
            inputs=tuple(self._tensor(name) for name in part.inputs),
            outputs=part.outputs,
            make_compilable=lambda: Compilable(file, file),
        )

    def _tensor(self, name: str) -> Tensor:
        found = self.graph.type_of(name)
        return Tensor(name, found.shape or (), found.dtype)
