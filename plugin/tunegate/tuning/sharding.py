"""Tasks over runners, so that all finish at about the same time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def balanced(loads: Sequence[float], bins: int) -> tuple[tuple[int, ...], ...]:
    """Indexes of the loads per bin, in order: longest processing time first (Graham, 1969).

    The fullest bin holds at most 4/3 - 1/(3 bins) of what the best partition's would.
    """
    filled = [(0.0, number) for number in range(bins)]
    chosen: list[list[int]] = [[] for _ in range(bins)]
    for index in sorted(range(len(loads)), key=lambda i: (-loads[i], i)):
        load, number = filled[0]
        chosen[number].append(index)
        heapq.heapreplace(filled, (load + loads[index], number))
    return tuple(tuple(sorted(indexes)) for indexes in chosen)
