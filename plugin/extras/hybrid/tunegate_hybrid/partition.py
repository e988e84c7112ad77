"""Parts of a graph that run together: compiled, and under ONNX Runtime.

Nodes are in an order in which they can run, as ONNX has them. Each gets a level: that of the node
before it, or one more where the kind changes. So no path leaves a level and comes back, the levels
can run one after the other, and no other cut needs fewer of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec


class Node(msgspec.Struct, frozen=True):
    """A node by the names of its tensors, constants aside. `work` is about how many operations it
    takes."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    work: float = 0.0


class ModelPart(msgspec.Struct, frozen=True):
    """The nodes that run together, by their places in the graph, and the tensors that go in and
    out."""

    is_compiled: bool
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def partition(
    nodes: Sequence[Node],
    compilable: Collection[int],
    outputs: Collection[str],
    least_work: float = 0.0,
) -> tuple[ModelPart, ...]:
    """Returns the parts in the order in which they run; `outputs` are those of the graph. What is
    connected in a level and compilable is a part, unless it has less than `least_work`: that costs
    more to enter and leave than it saves."""
    compiled = set(compilable)
    while True:
        levels = _levels(nodes, compiled)
        groups = _groups(nodes, levels, compiled)
        small = [g for g in groups if sum(nodes[place].work for place in g) < least_work]
        if not small:
            break
        compiled.difference_update(*small)
    return _parts(nodes, [(levels[g[0]], g) for g in groups], _others(levels, compiled), outputs)


def part_of(nodes: Sequence[Node], places: Sequence[int], outputs: Collection[str]) -> ModelPart:
    """Returns these nodes as a compiled part by themselves."""
    return ModelPart(True, tuple(places), *_crossing(nodes, places, _readers(nodes), outputs))


def _levels(nodes: Sequence[Node], compiled: Collection[int]) -> list[int]:
    """Levels with an odd number are compiled."""
    made: dict[str, int] = {}
    levels = []
    for place, node in enumerate(nodes):
        level = max((made[name] for name in node.inputs if name in made), default=0)
        if level % 2 != (place in compiled):
            level += 1
        levels.append(level)
        made.update(dict.fromkeys(node.outputs, level))
    return levels


def _groups(
    nodes: Sequence[Node], levels: Sequence[int], compiled: Collection[int]
) -> list[tuple[int, ...]]:
    """The compiled nodes that are connected within their level."""
    group_of = list(range(len(nodes)))

    def first(place: int) -> int:
        while group_of[place] != place:
            group_of[place] = place = group_of[group_of[place]]
        return place

    makers: dict[str, int] = {}
    for place in sorted(compiled):
        for name in nodes[place].inputs:
            maker = makers.get(name)
            if maker is not None and levels[maker] == levels[place]:
                one, other = sorted((first(maker), first(place)))
                group_of[other] = one
        makers.update(dict.fromkeys(nodes[place].outputs, place))
    together: dict[int, list[int]] = defaultdict(list)
    for place in sorted(compiled):
        together[first(place)].append(place)
    return [tuple(group) for group in together.values()]


def _others(levels: Sequence[int], compiled: Collection[int]) -> dict[int, list[int]]:
    """Returns the nodes that are not compiled, by level."""
    found: dict[int, list[int]] = defaultdict(list)
    for place, level in enumerate(levels):
        if place not in compiled:
            found[level].append(place)
    return found


def _parts(
    nodes: Sequence[Node],
    groups: Iterable[tuple[int, tuple[int, ...]]],
    others: dict[int, list[int]],
    outputs: Collection[str],
) -> tuple[ModelPart, ...]:
    in_order = [(level, True, group) for level, group in groups]
    in_order += [(level, False, tuple(sorted(found))) for level, found in others.items()]
    in_order.sort(key=lambda each: each[0])
    readers = _readers(nodes)
    return tuple(
        ModelPart(is_compiled, group, *_crossing(nodes, group, readers, outputs))
        for _, is_compiled, group in in_order
    )


def _readers(nodes: Sequence[Node]) -> dict[str, list[int]]:
    readers: dict[str, list[int]] = defaultdict(list)
    for place, node in enumerate(nodes):
        for name in node.inputs:
            readers[name].append(place)
    return readers


def _crossing(
    nodes: Sequence[Node],
    group: Sequence[int],
    readers: dict[str, list[int]],
    outputs: Collection[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the tensors that the group reads of others, and those of its own that others read."""
    inside = set(group)
    made = list(_each_once(name for place in group for name in nodes[place].outputs))
    read = _each_once(name for place in group for name in nodes[place].inputs)
    known = set(made)
    into = tuple(name for name in read if name not in known)
    out = (
        name
        for name in made
        if name in outputs or any(place not in inside for place in readers.get(name, ()))
    )
    return into, tuple(out)


def _each_once(names: Iterable[str]) -> Iterator[str]:
    return iter(dict.fromkeys(names))
