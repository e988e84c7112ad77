"""The neighbours' schedules that are worth compiling: the best by the expectation for this task.

Neighbours offer dozens of schedules, each in two adaptations. What is measured in the first
batch is all that many tasks ever get, so their order decides more than their number
(figures in docs/benchmarks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tunegate.compiler.search.space import DesignSpace
from tunegate.tune.prior import Prior
from tunegate.tune.protocol import Schedule
from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import ScheduleSample

MAX_TRANSFERRED = 8
"""The number of neighbours' schedules that are tried. Each is replayed twice, which takes as
long as picking a batch of samples."""
Expect = Callable[[Sequence[Schedule]], Sequence[float]]
"""Expects a score of each schedule of this space, (n,) floats; larger is better."""


class Transferred(NamedTuple):
    """`fitting` are schedules of TVM, the likeliest first, each described once.
    `misfits` fitted in neither way."""

    fitting: list[Any]
    misfits: int


def transferred_schedules(
    found: Sequence[Schedule],
    space: DesignSpace,
    expect: Expect | None,
    most: int = MAX_TRANSFERRED,
) -> Transferred:
    """`found` has the nearest first; the likeliest `most` are adapted, by TVM's own repair and by
    nearest divisors, and the likeliest `most` of these given. Without `expect` the nearest are."""
    refits = [space.refit(schedule) for schedule in found]
    known = [n for n, refit in enumerate(refits) if refit is not None]
    order = likeliest([refit for refit in refits if refit is not None], expect)
    adapted: dict[Schedule, Any] = {}
    misfits = len(found) - len(known)
    for place in order[:most]:
        number = known[place]
        fitting = _described(space, [found[number], refits[number]])
        misfits += not fitting
        adapted |= fitting
    schedules = list(adapted)
    best = likeliest(schedules, expect)[:most]
    return Transferred([adapted[schedules[place]] for place in best], misfits)


def _described(space: DesignSpace, variants: Sequence[Schedule | None]) -> dict[Schedule, Any]:
    found = {}
    for variant in dict.fromkeys(variants):  # one that fits as it is has one adaptation
        replayed = None if variant is None else space.replay(variant)
        described = None if replayed is None else space.describe(replayed.trace)
        if described is not None:
            found[described] = replayed
    return found


def expectation(features: SampleFeatures, prior: Prior | None) -> Expect | None:
    if prior is None:
        return None

    def expect(schedules: Sequence[Schedule]) -> list[float]:
        rows = [features.of(ScheduleSample(each.template, each.decisions)) for each in schedules]
        return [float(ratio) for ratio in prior.ratios(rows)]

    return expect


def likeliest(schedules: Sequence[Schedule], expect: Expect | None) -> list[int]:
    """Their places, the best by what is expected first; of equals the one that comes first."""
    if expect is None or not schedules:
        return list(range(len(schedules)))
    scores = expect(schedules)
    return sorted(range(len(schedules)), key=lambda place: -scores[place])
