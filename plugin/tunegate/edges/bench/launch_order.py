"""The random choices of a launch: its inputs, the process that starts first, and the side that each
pair of blocks begins with."""

from __future__ import annotations

import random
from typing import NamedTuple

from tunegate.artifacts.changes import SIDES, Side
from tunegate.edges.bench.sides import other
from tunegate.edges.run_seed import derived

_MANY_CASES = 2**32
"""More than any input has: the number of the first case fits a message."""


class LaunchOrder(NamedTuple):
    """`processes` start, and pairs of `blocks` begin, in this order. `inputs` is the seed of the
    inputs of both, and `case` the one that they take of cases that were given: each in its turn,
    from one that nobody can guess."""

    inputs: int
    processes: tuple[Side, Side]
    blocks: tuple[Side, ...]
    case: int


def launch_order(seed: int, launch: int, pairs: int) -> LaunchOrder:
    """Every launch has inputs of its own: a model whose time depends on them is seen on many. Pairs
    are ABBA quartets from a random start."""
    own = derived(seed, "launch", launch)
    rng = random.Random(derived(own, "order"))  # noqa: S311 -- nobody can guess the seed
    first = SIDES[rng.randrange(2)]
    begins: list[Side] = []
    for pair in range(pairs):
        begins.append(other(begins[-1]) if pair % 2 else SIDES[rng.randrange(2)])
    case = derived(seed, "case") % _MANY_CASES + launch
    return LaunchOrder(derived(own, "inputs"), (first, other(first)), tuple(begins), case)
