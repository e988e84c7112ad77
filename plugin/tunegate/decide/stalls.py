"""Stalls: single inferences that take several times the usual time, and whether they come with
the head.

A stall is rare, so the robust mean of a launch leaves it out, and p99 ends before it. Stalls come
in bursts, because what holds up a machine holds up several inferences; those in a row are one. The
unit is a quartet of blocks, base, head, head, base or the other way about: the side with more
stalls is the worse one. Without a change either side is the worse one with the same chance,
whatever the machine does, since nobody can foresee which side a quartet begins with. The number of
quartets with the worse head is binomial then, of one half: McNemar's test of paired counts
(Psychometrika 12, 1947), in its exact form. The rate of stalls has the bound of Clopper & Pearson
(Biometrika 26, 1934).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tunegate.artifacts.measurements import Launch, Stalls
from tunegate.decide.distributions import binomial_at_most
from tunegate.decide.objective import upper_share

SIZES = (5.0, 15.0, 50.0)
"""How many times the base's median makes a stall. A busy machine has its own of the length of a
scheduler's turn; larger ones of the head stand out from these."""
TOLERATED_SHARE = 1 / 1000
"""Stalls in fewer inferences leave p99.9 alone, and then count by the mean alone."""
FAIL_ERROR = 0.0005
"""The error of a fail by stalls, of all sizes together."""
SUSPICION = 0.05
"""The chance below which stalls on the head's side hold up a pass."""
COSTLY_SUSPICION = 0.13
"""The same where the mean looks slower, too: three of three quartets."""
WANTED_INFERENCES = 4500
"""With no stall in so many, one in 1,500 inferences is excluded with 95% confidence."""
WANTED_BELOW_MS = 10.0
"""The time of an inference below which so many are worth their seconds."""
_QUARTET = 2


def stalls_of(
    base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]
) -> tuple[Stalls, ...]:
    """Returns the stalls of one launch, from the times of the blocks of either side in order: those
    of each size. Two pairs of blocks are a quartet."""
    usual = float(np.median([time for block in base for time in block]))
    inferences = sum(map(len, head))
    return tuple(_of_size(times, times * usual, base, head, inferences) for times in SIZES)


def _of_size(
    times: float,
    limit_ms: float,
    base: Sequence[Sequence[float]],
    head: Sequence[Sequence[float]],
    inferences: int,
) -> Stalls:
    before, after = ([_bursts(block, limit_ms) for block in side] for side in (base, head))
    quartets = [
        (sum(before[at : at + _QUARTET]), sum(after[at : at + _QUARTET]))
        for at in range(0, len(before), _QUARTET)
    ]
    return Stalls(
        times=times,
        base=sum(before),
        head=sum(after),
        base_worse=sum(base > head for base, head in quartets),
        head_worse=sum(head > base for base, head in quartets),
        inferences=inferences,
    )


def _bursts(times_ms: Sequence[float], limit_ms: float) -> int:
    """Returns the number of stalls in a block: inferences over the limit in a row are one."""
    is_over = [False, *(time > limit_ms for time in times_ms)]
    return sum(now and not before for before, now in pairwise(is_over))


def total_stalls(launches: Sequence[Launch]) -> tuple[Stalls, ...]:
    """Returns the stalls of all of these launches by size; none where one does not know its
    own."""
    if not all(launch.stalls for launch in launches):
        return ()
    by_size = zip(*(launch.stalls for launch in launches), strict=True)
    return tuple(_added(each) for each in by_size)


def _added(known: Sequence[Stalls]) -> Stalls:
    return Stalls(
        times=known[0].times,
        base=sum(each.base for each in known),
        head=sum(each.head for each in known),
        base_worse=sum(each.base_worse for each in known),
        head_worse=sum(each.head_worse for each in known),
        inferences=sum(each.inferences for each in known),
    )


def chance_of(found: Stalls) -> float:
    """Returns the chance that, without a change, the head is the worse one in so many quartets or
    more."""
    decided = found.base_worse + found.head_worse
    return 1.0 if not found.head_worse else binomial_at_most(found.base_worse, decided, 0.5)


def clearest(found: Sequence[Stalls]) -> Stalls | None:
    """Returns the stalls of the size that comes with the head most clearly, if there are any."""
    return min(found, key=chance_of, default=None)


def come_oftener_than_tolerated(found: Stalls) -> bool:
    """Returns whether the head stalls oftener than the base by a share that moves p99.9."""
    return found.head - found.base >= TOLERATED_SHARE * found.inferences


def largest_share(found: Stalls) -> float:
    """Returns the upper bound, with 95% confidence, of the share of the head's inferences at which
    a stall begins; a machine's own stalls are in it."""
    return upper_share(found.head, found.inferences)


def one_in(found: Stalls) -> int:
    """Returns the rate that is excluded: a stall comes less often than once in so many
    inferences."""
    rate = 1 / largest_share(found)
    digits = max(0, math.floor(math.log10(rate)) - 1)
    return max(1, round(math.floor(rate / 10.0**digits) * 10.0**digits))


def wanted_pairs(
    pairs: int, launch: Launch, launches: int, *, pair_seconds: float, seconds: float
) -> int:
    """Returns the block pairs of each of the `launches` to come, after a first one: as many as see
    `WANTED_INFERENCES` of the head, as far as `seconds` for all of them allow, and no fewer than
    `pairs`."""
    made = launch.stalls[0].inferences if launch.stalls else 0
    if not made or launch.head_ms >= WANTED_BELOW_MS or pair_seconds <= 0:
        return pairs
    missing = (WANTED_INFERENCES - made) / (made / launch.pairs) / launches
    paid = seconds / launches / pair_seconds
    return max(pairs, _QUARTET * math.ceil(min(missing, paid) / _QUARTET))
