"""The pieces of a part that is slower compiled, so that each can be judged by itself.

Pieces are runs of nodes in the order of the graph. A piece begins with a node that has much to do:
what follows such a node is compiled together with it, and is not torn off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from tunegate_hybrid.partition import Node

_NARROW = 4
"""The most tensors that may cross a cut."""
_WORTH_A_CUT = 0.2
"""The share of all work that a piece has if it is cut again."""


def segments(
    nodes: Sequence[Node],
    families: Sequence[str],
    places: Sequence[int],
    outputs: Collection[str],
    most: int = 6,
) -> tuple[tuple[int, ...], ...]:
    """Returns the `places` in at most so many pieces. `families` say what each node is alike with,
    '' for those with little to do: first it is cut where the family changes, then where it halves
    the work of the largest piece."""
    ordered = sorted(places)
    crossing = _crossing(nodes, ordered, outputs)
    starts = [n for n in range(1, len(ordered)) if families[ordered[n]] and crossing[n] <= _NARROW]
    changes = _changes(ordered, families)
    cuts = sorted((n for n in starts if n in changes), key=lambda n: crossing[n])[: most - 1]
    work = [nodes[place].work for place in ordered]
    while len(cuts) < most - 1:
        cut = _halving(work, cuts, starts)
        if cut is None:
            break
        cuts.append(cut)
    return tuple(tuple(ordered[a:b]) for a, b in pairwise([0, *sorted(cuts), len(ordered)]))


def _changes(ordered: Sequence[int], families: Sequence[str]) -> set[int]:
    """Returns the places of nodes with much to do, of another family than the one before."""
    heavy = [n for n, place in enumerate(ordered) if families[place]]
    return {n for m, n in pairwise(heavy) if families[ordered[m]] != families[ordered[n]]}


def _halving(work: Sequence[float], cuts: Sequence[int], starts: Sequence[int]) -> int | None:
    """Returns the place that best halves the piece with the most work, if that is worth it."""
    best: tuple[float, int] | None = None
    for a, b in pairwise([0, *sorted(cuts), len(work)]):
        inside = [n for n in starts if a < n < b]
        whole = sum(work[a:b])
        if inside and whole > _WORTH_A_CUT * sum(work):
            cut = min(inside, key=lambda n: abs(sum(work[a:n]) - whole / 2))
            best = max(best or (0.0, cut), (whole, cut))
    return best[1] if best is not None else None


def _crossing(nodes: Sequence[Node], ordered: Sequence[int], outputs: Collection[str]) -> list[int]:
    """Returns the number of tensors that cross each place of the order: made before it, and read
    from there on."""
    made = {name: n for n, place in enumerate(ordered) for name in nodes[place].outputs}
    last = dict(_last_reads(nodes, ordered, made))
    steps = [0] * (len(ordered) + 1)
    for name, until in last.items():
        steps[made[name] + 1] += 1
        steps[until + 1] -= 1
    found, now = [], 0
    for n in range(len(ordered)):
        now += steps[n]
        found.append(now)
    return found


def _last_reads(
    nodes: Sequence[Node], ordered: Sequence[int], made: Collection[str]
) -> Iterator[tuple[str, int]]:
    for n, place in enumerate(ordered):
        for name in nodes[place].inputs:
            if name in made:
                yield name, n
