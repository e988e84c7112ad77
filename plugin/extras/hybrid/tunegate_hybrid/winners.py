"""Which nodes stay compiled: parts that are faster so, and of the others the pieces that are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from tunegate.compiler.loader import pays
from tunegate.models.reference.part_session import opened_part
from tunegate_hybrid.assembly import Assembly
from tunegate_hybrid.open_parts import LEAST_WORK, SplitModel
from tunegate_hybrid.partition import ModelPart, part_of, partition
from tunegate_hybrid.segments import segments

_Feed = Mapping[str, Any]


class Winners:
    """What is faster in the model on the inputs `feed`; parts that were tuned are cut where they
    lose as a whole."""

    def __init__(
        self, split: SplitModel, assembly: Assembly, feed: _Feed, threads: int, *, is_tuned: bool
    ) -> None:
        self._split, self._assembly, self._feed = split, assembly, feed
        self._threads, self._is_tuned = threads, is_tuned
        self._numbers = count()

    def parts(self) -> tuple[ModelPart, ...]:
        """Returns the whole model's parts where it is faster so; none where it is not."""
        first = () if self._split.is_slower else self._paying(self._split.parts)
        won = {place for part in first for place in part.nodes}
        if self._is_tuned:
            pieces = self._pieces([part for part in self._split.opened if part not in first])
            won |= {place for part in self._paying(pieces) for place in part.nodes}
        found = self.put_together(won)
        return found if any(part.is_compiled for part in found) and self._pays(found) else ()

    def put_together(self, compiled: set[int]) -> tuple[ModelPart, ...]:
        """Returns the model's parts where exactly these nodes are compiled: neighbours together."""
        graph = self._split.graph
        return partition(graph.nodes, compiled, graph.outputs, LEAST_WORK)

    def _pieces(self, losing: Sequence[ModelPart]) -> tuple[ModelPart, ...]:
        """All parts, those that lose in pieces; what cannot be cut is not tried again."""
        found: list[ModelPart] = []
        for part in self._split.parts:
            cut = self._cut(part) if part in losing else []
            found += cut or [msgspec.structs.replace(part, is_compiled=False)]
        return tuple(found)

    def _cut(self, part: ModelPart) -> list[ModelPart]:
        graph = self._split.graph
        found = segments(graph.nodes, graph.families(), part.nodes, graph.outputs)
        if len(found) == 1:
            return []
        pieces = [part_of(graph.nodes, nodes, graph.outputs) for nodes in found]
        return [
            msgspec.structs.replace(piece, is_compiled=self._is_taken(piece)) for piece in pieces
        ]

    def _is_taken(self, piece: ModelPart) -> bool:
        is_static = self._split.graph.of_static_shapes().issuperset(piece.nodes)
        return is_static and self._split.opener.opened(piece.nodes) is not None

    def _paying(self, parts: Sequence[ModelPart]) -> list[ModelPart]:
        """The compiled ones that are faster so, on what goes into them in the model."""
        if not any(part.is_compiled for part in parts):
            return []
        program = self._assembly.program(parts, self._split.graph.outputs, self._place())
        feeds = program.feeds(self._feed)
        return [
            part
            for part, (_, feed) in zip(parts, feeds, strict=True)
            if part.is_compiled and self._part_pays(part, feed)
        ]

    def _part_pays(self, part: ModelPart, feed: _Feed) -> bool:
        other = msgspec.structs.replace(part, is_compiled=False)
        ours, theirs = (
            self._assembly.program([each], part.outputs, self._place()).bound(feed)
            for each in (part, other)
        )
        return self._is_faster(ours, theirs)

    def _pays(self, parts: Sequence[ModelPart]) -> bool:
        """Returns whether the model of these parts is faster than as it is."""
        program = self._assembly.program(parts, self._split.graph.outputs, self._place())
        whole = opened_part(self._split.prepared.original, self._threads)
        return self._is_faster(program.bound(self._feed), lambda: whole.run(None, dict(self._feed)))

    def _is_faster(self, way: Callable[[], object], other: Callable[[], object]) -> bool:
        return pays(way, other, self._threads)

    def _place(self) -> Path:
        return self._assembly.scratch(f"tried-{next(self._numbers)}")
