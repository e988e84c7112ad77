"""Adapts a source's tile sizes to a loop of another extent.

Where the source's factors do not divide, TVM's own repair lets one factor take the whole remaining
loop, and a tile that wide takes minutes to compile. This takes the nearest factorization instead.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from tunegate_cache.format.decisions import SamplingInstruction
from tunegate_cache.format.records import Decision

# Unrolling and vectorizing grow with the innermost factor, so growing it costs more than shrinking
# it.
INNERMOST_GROWTH_PENALTY = 0.25


def nearest_factors(extent: int, source: Sequence[int], max_innermost: int) -> tuple[int, ...]:
    """Factors of `extent`, as many as the source's, nearest to them.

    Minimizes the sum over all but the outermost of |log2(factor / source)|, plus a quarter of the
    innermost's growth; the outermost absorbs the scale. The innermost is at most `max_innermost`
    (0: no bound), except that a single factor is always the extent itself.
    """
    if len(source) == 1:
        return (extent,)
    return _nearest_factors(extent, tuple(source[1:]), max_innermost)


def adapt(
    decisions: Sequence[Decision], template: Sequence[SamplingInstruction]
) -> tuple[Decision, ...] | None:
    """Returns a source's decisions for another workload of the same template, with tiles refitted
    to its loops, None if they cannot apply. A tile of unknown extent stays."""
    if [index for index, _ in decisions] != [instruction.index for instruction in template]:
        return None
    refits: list[Decision] = []
    for (index, values), instruction in zip(decisions, template, strict=True):
        tile = _fit_tile(values, instruction)
        if tile is None:
            return None
        refits.append((index, tile))
    return tuple(refits)


def _fit_tile(values: tuple[int, ...], instruction: SamplingInstruction) -> tuple[int, ...] | None:
    extent = instruction.extent
    match instruction.kind:
        case "perfect-tile":
            if len(values) != instruction.n or min(values, default=0) < 1:
                return None
            if extent is None:
                return values
            return nearest_factors(extent, values, instruction.max_innermost)
        case "partitioned-tile":
            # The parts of this decision depend on each other, so only a source that fits unchanged
            # is used.
            return values if extent is None or math.prod(values) == extent else None
        case "categorical":
            return values if len(values) == 1 and values[0] < instruction.candidates else None
        case "compute-location":
            return values


@lru_cache(maxsize=65536)
def _nearest_factors(extent: int, inner: tuple[int, ...], max_innermost: int) -> tuple[int, ...]:
    """Returns the best factors, by dynamic programming over (remaining extent, factors left to
    choose)."""
    limit = max_innermost if max_innermost > 0 else extent
    best: dict[int, tuple[float, tuple[int, ...]]] = {}
    for factor in _divisors(extent):
        if factor <= limit:
            growth = max(0.0, math.log2(factor / inner[-1]))
            cost = abs(math.log2(factor / inner[-1])) + INNERMOST_GROWTH_PENALTY * growth
            best[extent // factor] = (cost, (factor,))
    for factor_of_source in reversed(inner[:-1]):
        best = _with_one_more(best, factor_of_source)
    remaining, (_, factors) = min(best.items(), key=lambda item: (item[1], item[0]))
    return (remaining, *factors)


def _with_one_more(
    best: dict[int, tuple[float, tuple[int, ...]]], target_factor: int
) -> dict[int, tuple[float, tuple[int, ...]]]:
    longer: dict[int, tuple[float, tuple[int, ...]]] = {}
    for remaining, (cost, factors) in best.items():
        for factor in _divisors(remaining):
            choice = (cost + abs(math.log2(factor / target_factor)), (factor, *factors))
            rest = remaining // factor
            if rest not in longer or choice < longer[rest]:
                longer[rest] = choice
    return longer


@lru_cache(maxsize=4096)
def _divisors(number: int) -> tuple[int, ...]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    large = [number // d for d in reversed(small) if d * d != number]
    return (*small, *large)
