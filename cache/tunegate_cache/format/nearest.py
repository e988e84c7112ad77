"""Finds the recorded workloads of the same skeleton that are nearest in shape."""

import math
from collections.abc import Iterable, Sequence

NEIGHBOURS = 8
RECORDS_OF_EACH = 4


def distance(first: Sequence[int], second: Sequence[int]) -> float:
    """Returns the sum of |log2 a - log2 b| over the extents, infinite if their numbers differ."""
    if len(first) != len(second):
        return math.inf
    return math.fsum(abs(math.log2(a) - math.log2(b)) for a, b in zip(first, second, strict=True))


def nearest_neighbours(
    own_extents: Sequence[int], candidates: Iterable[tuple[str, Sequence[int]]]
) -> list[tuple[float, str]]:
    """Returns (distance, name) of at most `NEIGHBOURS`, nearest first."""
    distances = [(distance(own_extents, extents), name) for name, extents in candidates]
    return sorted(pair for pair in distances if math.isfinite(pair[0]))[:NEIGHBOURS]
