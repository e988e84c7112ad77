"""Several cells gated together: Holm's step-down (Holm, Scandinavian
Journal of Statistics 6, 1979).

One wrong fail of any cell blocks a merge, so FAIL shares its error between the cells. A cell
that has failed needs none of it any more: the clearest one is judged with the error split
over all, the next with it split over the others, until one is not clear enough. PASS needs
every cell, and is not shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tunegate.gate.batches import batch_means, share_alone
from tunegate.gate.decision import FAIL_ERROR, spread_of
from tunegate.gate.distributions import t_probability


def p_value(effects: Sequence[float], *, margin: float, analyses: int) -> float:
    """The p-value of one cell: at most this often launches look so slow where the true change is
    `margin` or less, whichever analysis was the last. Two launches or more."""
    alone = share_alone(len(effects))
    chance = _tail_probability(effects, margin) / alone
    if alone < 1.0:
        chance = min(chance, _tail_probability(batch_means(effects), margin) / (1 - alone))
    return min(1.0, analyses * chance)


def _tail_probability(effects: Sequence[float], margin: float) -> float:
    distance = (margin - float(np.mean(effects))) * math.sqrt(len(effects)) / spread_of(effects)
    return t_probability(len(effects) - 1, distance)


def shares(p_values: Sequence[float]) -> tuple[int, ...]:
    """The number of parts that the error is split into for each cell:
    `cells` of gate.decision.bounds."""
    found = [0] * len(p_values)
    left = len(p_values)
    for cell in sorted(range(len(p_values)), key=lambda cell: p_values[cell]):
        found[cell] = left
        if p_values[cell] <= FAIL_ERROR / left:
            left -= 1
    return tuple(found)
