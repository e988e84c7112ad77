"""A model that the compiler cannot take whole, or that is slower so: the parts that it can take,
each opened as a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import onnx

from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.opening import OpenModel, OpenPrepared
from tunegate.errors import UnsupportedModelError
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.value_types import value_types
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_hybrid.model_graph import ModelGraph
from tunegate_hybrid.part_opener import PartOpener
from tunegate_hybrid.partition import ModelPart, part_of, partition

LEAST_WORK = 2e5
"""The operations that are worth a crossing: some 10 microseconds of a slow core."""
_FEW = 4
"""The number of nodes that are not divided further where they fail together only."""
_MOST_PARTS = 32
"""The number of parts that are tried until what is left is taken as refused."""


class SplitModel(NamedTuple):
    """The parts in the order in which they run; `reason` is why the model is not compiled whole.
    With `is_slower` the one part is the whole model, and is known to be slower compiled."""

    prepared: PreparedModel
    opener: PartOpener
    parts: tuple[ModelPart, ...]
    reason: str
    is_slower: bool = False

    @property
    def graph(self) -> ModelGraph:
        return self.opener.graph

    @property
    def opened(self) -> dict[ModelPart, OpenModel]:
        """The parts that can be compiled."""
        compiled = (part for part in self.parts if part.is_compiled)
        found = ((part, self.opener.opened(part.nodes)) for part in compiled)
        return {part: each for part, each in found if each is not None}

    @property
    def functions(self) -> list[ModelFunction]:
        return [function for each in self.opened.values() for function in each.functions]


def split_model(
    prepared: PreparedModel, open_part: OpenPrepared, into: Path, reason: str
) -> SplitModel:
    """Raises UnsupportedModelError with the reason where no part is worth compiling."""
    try:
        opener = PartOpener(_graph_of(prepared), open_part, into)
        parts = _parts(opener)
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class.
        raise UnsupportedModelError(reason) from error
    split = SplitModel(prepared, opener, parts, reason)
    if not split.opened:
        raise UnsupportedModelError(reason)
    return split


def opener_of(
    prepared: PreparedModel, open_part: OpenPrepared, into: Path, reason: str = ""
) -> PartOpener:
    """Returns what opens parts of this model. Raises UnsupportedModelError with the reason where
    its graph cannot be read."""
    try:
        return PartOpener(_graph_of(prepared), open_part, into)
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class.
        raise UnsupportedModelError(reason) from error


def split_as(opener: PartOpener, prepared: PreparedModel, how: HowBuilt) -> SplitModel:
    """Returns the model cut as an earlier run has cut it. Raises UnsupportedModelError where that
    does not fit it: what is remembered may be of another model."""
    graph, wanted = opener.graph, set(how.compiled)
    reason = "it was cut otherwise"
    if mark_of(graph.digest) not in how.kept or not wanted <= graph.of_static_shapes():
        raise UnsupportedModelError(reason)
    parts = partition(graph.nodes, wanted, graph.outputs, LEAST_WORK)
    taken = [part for part in parts if part.is_compiled]
    is_whole = {place for part in taken for place in part.nodes} == wanted
    is_fit = is_whole and 0 < len(taken) <= _MOST_PARTS
    if not is_fit or any(opener.opened(part.nodes) is None for part in taken):
        raise UnsupportedModelError(reason)
    return SplitModel(prepared, opener, parts, reason)


def slower_whole(whole: OpenModel, open_part: OpenPrepared, into: Path) -> SplitModel:
    """Returns a model that is compiled whole as one part, to be cut. Raises UnsupportedModelError
    where it cannot be."""
    reason = "it is slower compiled whole"
    opener = opener_of(whole.prepared, open_part, into, reason)
    graph = opener.graph
    part = part_of(graph.nodes, range(len(graph.nodes)), graph.outputs)
    opener.take(part.nodes, whole)
    return SplitModel(whole.prepared, opener, (part,), reason, is_slower=True)


def _graph_of(prepared: PreparedModel) -> ModelGraph:
    proto = onnx.load(prepared.optimized)
    return ModelGraph(proto, value_types(proto))


def _parts(opener: PartOpener) -> tuple[ModelPart, ...]:
    """The parts when every compiled one has been opened: what the compiler takes is found out by
    asking it."""
    graph = opener.graph
    candidates = graph.of_static_shapes()
    compilable = candidates - set(_refused_alone(opener, candidates))
    while True:
        parts = partition(graph.nodes, compilable, graph.outputs, LEAST_WORK)
        wanted = [part for part in parts if part.is_compiled]
        refused = {place for part in wanted for place in _refused(opener, part.nodes)}
        if not refused:
            return parts
        compilable -= refused


def _refused_alone(opener: PartOpener, places: Iterable[int]) -> Iterator[int]:
    """The nodes that are refused by themselves; nodes of a kind are asked about once."""
    answers: dict[tuple[object, ...], bool] = {}
    for place in sorted(places):
        kind = opener.graph.kind_of(place)
        if kind not in answers:
            answers[kind] = opener.opened((place,)) is None
        if answers[kind]:
            yield place


def _refused(opener: PartOpener, nodes: tuple[int, ...]) -> Iterator[int]:
    """The nodes without which the compiler takes the rest, by halves; more than those, where only
    together they are too much for it."""
    if opener.opened(nodes) is not None:
        return
    if len(nodes) <= _FEW or opener.tried >= _MOST_PARTS:
        yield from nodes
        return
    middle = len(nodes) // 2
    halves = nodes[:middle], nodes[middle:]
    if all(opener.opened(half) is not None for half in halves):
        yield nodes[middle]
        return
    for half in halves:
        yield from _refused(opener, half)
