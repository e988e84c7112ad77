"""The size of a sample's code, before anything is lowered: samples that would keep the compiler
busy are not tried.

Trimmer (IEEE CLOUD 2022) rejects candidates by a model of their cost alone; that some need a
hundred times as long to compile, and are no faster for it, was found here. On CPUs it is the copy
of a tile of the output, unrolled to the last statement (figures in docs/benchmarks).
"""

from __future__ import annotations

import math

from tunegate.cost_model.loop_nest import Decided, LoopNest

MAX_STATEMENTS = 255


def is_bloated(nest: LoopNest | None, decided: Decided) -> bool:
    return nest is not None and copied_statements(nest, decided) > MAX_STATEMENTS


def copied_statements(nest: LoopNest, decided: Decided) -> int:
    """Vectors that the unrolled copy of a tile of the output moves; 0 where
    nothing is copied, or in a loop."""
    if nest.copied_at is None:
        return 0
    tile = math.prod(math.prod(decided[place][nest.copied_at + 1 :]) for place in nest.spatial)
    innermost, _ = nest.order[-1]
    vectors = tile // decided[innermost][-1]
    return vectors if vectors <= nest.unrolled_steps(decided) else 0
