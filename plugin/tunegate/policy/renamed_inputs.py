"""Inputs that have another name in the head: what the base says of them holds for them still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TypeVar

import msgspec

from tunegate.artifacts.outlines import ModelInput
from tunegate.input_shapes import ShapeLevel

_Said = TypeVar("_Said")


class NamesInHead(msgspec.Struct, frozen=True):
    """The names of the base's inputs in the head: they are `renamed`, or `lost`, or unchanged.
    `new` are the names of inputs of the head that were called otherwise, or were not there."""

    renamed: Mapping[str, str] = {}
    lost: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()

    def of(self, said: Mapping[str, _Said]) -> dict[str, _Said]:
        """Returns the values for the base's inputs, under the names of the head."""
        return {
            self.renamed.get(name, name): each
            for name, each in said.items()
            if name not in self.lost
        }

    def level(self, level: ShapeLevel) -> ShapeLevel:
        return msgspec.structs.replace(level, shapes=self.of(level.shapes))

    def inputs(self, before: Sequence[ModelInput]) -> tuple[ModelInput, ...]:
        """The inputs of the base that the head still has."""
        return tuple(self.of({each.name: _called(each, self.renamed) for each in before}).values())

    @property
    def gone(self) -> frozenset[str]:
        """The names in the base that are not those of the same input in the head."""
        return self.lost | self.renamed.keys()

    @property
    def backwards(self) -> NamesInHead:
        """Returns the names of the head's inputs in the base, as if the base were later."""
        renamed = {now: was for was, now in self.renamed.items()}
        return NamesInHead(renamed, self.new - renamed.keys(), self.gone)


def names_in_head(
    before: Sequence[ModelInput] | None, after: Sequence[ModelInput] | None
) -> NamesInHead:
    """The inputs without one of their name on the other side are the same in their order, as long
    as they have as many dimensions: a new name makes no model smaller. None are those of a model
    that nobody can read."""
    if before is None or after is None:
        return NamesInHead()
    ranks = {each.name: _rank(each) for each in before}
    kept = {each.name for each in after if ranks.get(each.name) == _rank(each)}
    renamed = _renamed(
        [each for each in before if each.name not in kept],
        [each for each in after if each.name not in kept],
    )
    return NamesInHead(
        renamed,
        lost=frozenset(ranks.keys() - kept - renamed.keys()),
        new=frozenset({each.name for each in after} - kept),
    )


def _renamed(before: Sequence[ModelInput], after: Sequence[ModelInput]) -> dict[str, str]:
    """Those of the same type come first."""
    left, renamed = [*after], dict[str, str]()
    for is_alike, was in product((_is_same_type, _is_same_rank), before):
        same = next((each for each in left if is_alike(was, each)), None)
        if same is not None and was.name not in renamed:
            left.remove(same)
            renamed[was.name] = same.name
    return renamed


def _rank(value: ModelInput) -> int | None:
    return len(value.dimensions) if value.is_ranked else None


def _is_same_rank(was: ModelInput, now: ModelInput) -> bool:
    return _rank(was) == _rank(now)


def _is_same_type(was: ModelInput, now: ModelInput) -> bool:
    return was.dtype == now.dtype and _is_same_rank(was, now)


def _called(value: ModelInput, names: Mapping[str, str]) -> ModelInput:
    return msgspec.structs.replace(value, name=names.get(value.name, value.name))
