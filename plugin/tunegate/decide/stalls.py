"""Stalls: single inferences of several times the usual time, and whether they come with the head.

A stall is rare: the robust mean of a launch leaves it out, and p99 ends before it. Stalls come in
bursts, because what holds up a machine holds up several inferences, so consecutive ones count once.
The unit is a quartet of blocks, base, head, head, base or the reverse. The side with more stalls is
the worse one. Without a change either side is worse with equal chance whatever the machine does,
because the order of a quartet is random. A head that is slower by less than the margin also meets
more of the machine's stalls, by as much: its chance to be worse is then larger by the ratio of the
medians. Its counts are scaled by that ratio, too, so the test is cautious where stalls are many.
The number of quartets with a worse head is binomial: McNemar's test of paired counts (Psychometrika
12, 1947), in its exact form. The rate of stalls has the bound of Clopper & Pearson (Biometrika 26,
1934).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tunegate.artifacts.measurements import Launch, Stalls
from tunegate.decide.distributions import binomial_at_most, upper_share

SIZES = (5.0, 15.0, 50.0)
"""A stall takes this many times the base's median. Short ones are also made by a scheduler's turn
on a busy machine; long ones of the head stand out."""
TOLERATED_SHARE = 1 / 1000
"""Rarer stalls leave p99.9 alone, and count by the mean only."""
FAIL_ERROR = 0.0005
"""The error of a fail by stalls of any size."""
SUSPICION = 0.05
"""The p-value below which stalls of the head hold up a pass."""
COSTLY_SUSPICION = 0.13
"""The same if the mean looks slower, too: three of three quartets."""
DOUBT = 0.25
"""The p-value below which stalls of the head make a fast model run on. It costs seconds, never a
verdict."""
WANTED_INFERENCES = 4500
"""Without a stall in so many inferences, one in 1,500 is excluded with 95% confidence."""
DECISIVE_INFERENCES, GROWTH = 24_000, 3
"""In so many inferences, stalls of one in 1,000 fail. An analysis has at most three times the
inferences of the one before, because most doubts end sooner."""
WANTED_BELOW_MS = 10.0
"""Below this time of an inference, so many are worth their seconds."""
_QUARTET = 2


def stalls_of(
    base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]
) -> tuple[Stalls, ...]:
    """Returns the stalls of one launch by size, from the block times of either side in order. Two
    pairs of blocks are a quartet."""
    usual, usual_head = (float(np.median([t for block in x for t in block])) for x in (base, head))
    slower = max(1.0, usual_head / usual) if usual else 1.0
    # The machine holds either side up for as long, beyond what its inference takes.
    limits = [(times * usual, (times + slower - 1) * usual) for times in SIZES]
    return tuple(
        _of_size(times, each, base, head, slower) for times, each in zip(SIZES, limits, strict=True)
    )


def _of_size(
    times: float,
    limits_ms: tuple[float, float],
    base: Sequence[Sequence[float]],
    head: Sequence[Sequence[float]],
    slower: float,
) -> Stalls:
    """Returns the stalls over the limits of base and head. `slower` is by how much the machine
    alone would give the head more of them, as its inferences take longer."""
    before, after = (
        [_bursts(block, limit_ms) for block in side]
        for side, limit_ms in zip((base, head), limits_ms, strict=True)
    )
    quartets = [
        (round(slower * sum(before[at : at + _QUARTET])), sum(after[at : at + _QUARTET]))
        for at in range(0, len(before), _QUARTET)
    ]
    return Stalls(
        times=times,
        base=sum(before),
        head=sum(after),
        base_worse=sum(base > head for base, head in quartets),
        head_worse=sum(head > base for base, head in quartets),
        inferences=sum(map(len, head)),
        slower=slower,
    )


def _bursts(times_ms: Sequence[float], limit_ms: float) -> int:
    """Returns the number of stalls in a block. Consecutive inferences over the limit are one."""
    is_over = [False, *(time > limit_ms for time in times_ms)]
    return sum(now and not before for before, now in pairwise(is_over))


def total_stalls(launches: Sequence[Launch]) -> tuple[Stalls, ...]:
    """Returns the stalls of all launches by size, none if one launch did not count its own."""
    if not all(launch.stalls for launch in launches):
        return ()
    by_size = zip(*(launch.stalls for launch in launches), strict=True)
    return tuple(_sum_stalls(each) for each in by_size)


def _sum_stalls(parts: Sequence[Stalls]) -> Stalls:
    inferences = sum(part.inferences for part in parts)
    weighted_sum = sum(part.slower * part.inferences for part in parts)
    return Stalls(
        times=parts[0].times,
        base=sum(part.base for part in parts),
        head=sum(part.head for part in parts),
        base_worse=sum(part.base_worse for part in parts),
        head_worse=sum(part.head_worse for part in parts),
        inferences=inferences,
        slower=max(1.0, weighted_sum / inferences) if inferences else 1.0,
    )


def chance_of(stalls: Stalls) -> float:
    """Returns the probability that the head is worse in so many quartets or more if all stalls are
    the machine's."""
    if not stalls.head_worse:
        return 1.0
    quartets = stalls.base_worse + stalls.head_worse
    return binomial_at_most(stalls.base_worse, quartets, 1 / (1 + stalls.slower))


def clearest(sizes: Sequence[Stalls]) -> Stalls | None:
    """Returns the stalls of the size that comes with the head most clearly, None without stalls."""
    return min(sizes, key=chance_of, default=None)


def exceed_tolerated_share(stalls: Stalls) -> bool:
    """Returns whether the head stalls more often than the machine makes it, by a share that moves
    p99.9."""
    return stalls.head - stalls.slower * stalls.base >= TOLERATED_SHARE * stalls.inferences


def largest_share(stalls: Stalls) -> float:
    """Returns the upper 95% bound of the share of the head's inferences at which a stall begins,
    the machine's own stalls included."""
    return upper_share(stalls.head, stalls.inferences)


def one_in(stalls: Stalls) -> int:
    """Returns the excluded rate: a stall is rarer than one in this many inferences."""
    rate = 1 / largest_share(stalls)
    digits = max(0, math.floor(math.log10(rate)) - 1)
    return max(1, round(math.floor(rate / 10.0**digits) * 10.0**digits))


def may_matter(sizes: Sequence[Stalls], *, is_costly: bool) -> bool:
    """Returns whether stalls may come with the head, and may move p99.9, or the mean if it looks
    slower, too."""
    return any(
        _may_come_with_head(size) and (is_costly or largest_share(size) > TOLERATED_SHARE)
        for size in sizes
    )


def _may_come_with_head(stalls: Stalls) -> bool:
    return chance_of(stalls) <= DOUBT or (stalls.head > 0 and not stalls.base)


def wanted_pairs(
    pairs: int,
    launches: Sequence[Launch],
    more: int,
    *,
    inferences: int,
    pair_seconds: float,
    seconds: float,
) -> int:
    """Returns the block pairs for each of `more` launches of a fast model: enough to have
    `inferences` of the head in all, within `seconds`. At least `pairs`."""
    inferences_made = sum(launch.stalls[0].inferences for launch in launches if launch.stalls)
    if not inferences_made or launches[0].head_ms >= WANTED_BELOW_MS or pair_seconds <= 0:
        return pairs
    of_pair = inferences_made / sum(launch.pairs for launch in launches)
    missing = (inferences - inferences_made) / of_pair / more
    affordable_pairs = seconds / more / pair_seconds
    return max(pairs, _QUARTET * math.ceil(min(missing, affordable_pairs) / _QUARTET))
