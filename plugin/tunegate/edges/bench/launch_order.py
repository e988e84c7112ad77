"""What chance decides in one launch: its inputs, which process starts first, and which side each pair of blocks begins with."""

from __future__ import annotations

import random
from typing import NamedTuple

from tunegate.edges.run_seed import derived


class LaunchOrder(NamedTuple):
    """Side 0 is the base, side 1 the head. `inputs` is the seed of the inputs of both."""

    inputs: int
    processes: tuple[int, int]
    blocks: tuple[int, ...]


def launch_order(seed: int, launch: int, pairs: int) -> LaunchOrder:
    """Every launch has inputs of its own: a model whose time depends on them is seen on many. Pairs are ABBA quartets
    from a random start."""
    own = derived(seed, "launch", launch)
    chance = random.Random(derived(own, "order"))  # noqa: S311 -- nobody can guess the seed
    first = chance.randrange(2)
    begins: list[int] = []
    for pair in range(pairs):
        begins.append(1 - begins[-1] if pair % 2 else chance.randrange(2))
    return LaunchOrder(derived(own, "inputs"), (first, 1 - first), tuple(begins))
