"""Launches in batches of two: non-overlapping batch means (Law & Kelton,
Simulation Modeling and Analysis).

An effect that comes and goes from one launch to the next makes their spread wide, and the spread of
the means of two neighbours small. Where there are enough launches a part of the error buys a second
pair of bounds, from these means: whichever bound is the nearer one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

FEWEST = 9
"""Launches: four batches."""
SHARE = 0.25
"""The share of the error for batch means, once there are so many launches."""
_SIZE = 2


def batch_means(effects: Sequence[float]) -> list[float]:
    """The batch means of the latest launches; an odd one is the first."""
    first = len(effects) % _SIZE
    return [
        (a + b) / _SIZE for a, b in zip(effects[first::2], effects[first + 1 :: 2], strict=True)
    ]


def share_alone(launches: int) -> float:
    """Returns the share of the error that is left for the bounds of the launches themselves."""
    return 1.0 if launches < FEWEST else 1.0 - SHARE
