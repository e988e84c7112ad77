"""Trials shared over tasks before any of them is tuned.

Every task that matters gets a first batch before any gets more; the rest goes by the square root
of the expected gain, because each further trial of one task gains less than the one before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import msgspec

FIRST_BATCH = 8
MIN_FIRST_BATCH = 2
SHARE_THAT_MATTERS = 0.01
"""Share of the estimated model time from which a task gets a first batch."""
EXPLORATORY_BATCH = 2
EXPLORATORY_SHARE = 0.1
"""The share of what the first batches leave that goes to a small batch of each task
that is believed not to matter."""
_BISECTIONS = 100


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of a task for trials. `headroom` is the share of its time that can be saved, 0 to
    1; `is_of_base_alone`: no head uses it."""

    weight: int
    now_ms: float
    headroom: float
    is_of_base_alone: bool = False

    @property
    def gain_ms(self) -> float:
        """The end-to-end time that tuning is expected to save at best."""
        return self.weight * self.now_ms * self.headroom


def mattering(demands: Sequence[Demand]) -> list[int]:
    """Those that are to be searched before anything else."""
    total_ms = sum(demand.weight * demand.now_ms for demand in demands)
    return [
        index
        for index, demand in enumerate(demands)
        if demand.gain_ms > 0 and demand.weight * demand.now_ms >= SHARE_THAT_MATTERS * total_ms
    ]


def share_trials(demands: Sequence[Demand], trials: int) -> tuple[int, ...]:
    """Trials for each, in the order given; never more than `trials` in total.

    What has no room gets none. Otherwise all are given away, so that a heavier task never gets
    fewer than a lighter one like it.
    """
    first = _first_batches(demands, trials)
    unseen = [i for i, demand in enumerate(demands) if demand.gain_ms > 0 and not first[i]]
    if EXPLORATORY_BATCH * len(unseen) <= EXPLORATORY_SHARE * (trials - sum(first)):
        for index in unseen:
            first[index] = EXPLORATORY_BATCH
    pulls = [math.sqrt(demand.gain_ms) for demand in demands]
    return divide(pulls, trials, at_least=first)


def divide(
    pulls: Sequence[float], total: int, *, at_least: Sequence[int] | None = None
) -> tuple[int, ...]:
    """`total` in whole parts proportional to `pulls`, by highest averages (D'Hondt).

    Unlike rounding the quotas, a larger pull never gets less, whatever the others are. Nothing is
    given where there is no pull; `at_least` must not sum to more than `total`.
    """
    floors = [0] * len(pulls) if at_least is None else list(at_least)
    if not any(pulls):
        return tuple(floors)
    largest = max(pulls)
    pulls = [pull / largest for pull in pulls]  # quotients of tiny pulls would lose their digits
    parts = _just_below(pulls, total, floors)
    heap = [
        (-pull / (part + 1), i)
        for i, (pull, part) in enumerate(zip(pulls, parts, strict=True))
        if pull > 0
    ]
    heapq.heapify(heap)
    for _ in range(total - sum(parts)):
        _, index = heap[0]
        parts[index] += 1
        heapq.heapreplace(heap, (-pulls[index] / (parts[index] + 1), index))
    return tuple(parts)


def _just_below(pulls: Sequence[float], total: int, floors: Sequence[int]) -> list[int]:
    """The allocation that highest averages has a few steps before the
    end, found by bisecting its price."""

    def parts_at(price: float) -> list[int]:
        return [max(low, int(pull / price)) for pull, low in zip(pulls, floors, strict=True)]

    dear = sum(pulls) / max(total, 1) + max(pulls)
    cheap = 0.0
    for _ in range(_BISECTIONS):
        price = (dear + cheap) / 2
        if price in (dear, cheap):
            break
        if sum(parts_at(price)) <= total:
            dear = price
        else:
            cheap = price
    return parts_at(dear)


def _first_batches(demands: Sequence[Demand], trials: int) -> list[int]:
    """Equal first batches for all that matter. Where they do not reach all, the biggest gains of
    base and head come in turn, so that neither side is served before the other."""
    batches = [0] * len(demands)
    served = _in_turn(demands, mattering(demands))
    if not served:
        return batches
    each = min(FIRST_BATCH, max(MIN_FIRST_BATCH, trials // len(served)))
    for index in served:
        batches[index] = min(each, trials - sum(batches))
    return batches


def _in_turn(demands: Sequence[Demand], indices: Sequence[int]) -> list[int]:
    """The biggest gain of each side, then the second of each."""
    by_gain = sorted(indices, key=lambda i: -demands[i].gain_ms)
    of_base = [i for i in by_gain if demands[i].is_of_base_alone]
    others = [i for i in by_gain if not demands[i].is_of_base_alone]
    place = {i: rank for side in (of_base, others) for rank, i in enumerate(side)}
    return sorted(by_gain, key=lambda i: place[i])
