"""The schedule that the prior expects most of, where nothing can be measured.

One-Shot Tuner (CC 2022) builds with the first pick of a model that was trained on other tasks. Here
the pick of a workload hangs on nothing but the workload, the target, the prior and what neighbours
offer, so that base and head have the same one.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from tunegate.cost_model.prior import Prior
from tunegate.cost_model.sample_features import SampleFeatures
from tunegate.cost_model.sample_pools import SamplePools
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.variants.algorithm_variants import DIRECT, asked_algorithm
from tunegate.edges.metaschedule.variants.grouped_convolution import grouped_convolution
from tunegate.edges.metaschedule.workload import Workload
from tunegate.engine.protocol import Schedule
from tunegate.tuning.schedule_samples import SampleSpace, ScheduleSample

_MOST_REPLAYS = 24
"""The number of samples of which one must replay, else there is no pick."""


class PriorPick(NamedTuple):
    """`replayed` is TVM's schedule, `schedule` its decisions."""

    replayed: Any
    schedule: Schedule


def prior_pick(
    workload: Workload,
    target: Any,
    space: DesignSpace,
    prior: Prior | None,
    *,
    offered: Collection[Schedule] = (),
    failed: Collection[Schedule] = (),
) -> PriorPick | None:
    """Returns the likeliest of the `offered` and of what is sampled, without those that `failed`;
    None where the prior abstains: there is none for such targets, it knows no such loop nest, or it
    has seen no such operator, as grouped convolutions: their default schedule is faster than its
    pick."""
    kind = str(target.kind.name)
    if prior is None or not _is_known(workload, space):
        return None
    ranked = _ranked(space, prior, kind, _seed(workload), [_sample(each) for each in offered])
    without = {_sample(each) for each in failed}
    for number, sample in enumerate(each for each in ranked if each not in without):
        if number == _MOST_REPLAYS:
            return None
        replayed = space.replay(Schedule(*sample))
        described = None if replayed is None else space.describe(replayed.trace)
        if described is not None and _sample(described) not in without:
            return PriorPick(replayed, described)
    return None


def _is_known(workload: Workload, space: DesignSpace) -> bool:
    """Returns whether a prior may know the operator: one with steps of vectors is grouped, and so
    is one that was asked to have none."""
    sketches = space.sketches().values()
    main = workload.module["main"]
    is_grouped = any(each.lanes > 1 for each in sketches) or (
        asked_algorithm(main) == DIRECT and grouped_convolution(main) is not None
    )
    return any(each.nest for each in sketches) and not is_grouped


def _ranked(
    space: DesignSpace, prior: Prior, kind: str, seed: int, offered: Sequence[ScheduleSample]
) -> Iterator[ScheduleSample]:
    """Yields what the prior knows, the likeliest first."""
    sampling = space.sampling()
    features = SampleFeatures(sampling, space.sketches())
    seldom = [d for d, t in space.templates.items() if t.variant.is_seldom_best]
    rng = random.Random(seed)  # noqa: S311 -- a search, not a secret
    samples = SampleSpace(sampling, rng, seldom=seldom)
    pools = SamplePools(samples, features, drops_bloated=kind == "llvm")
    drawn, _ = pools.drawn(offered, ())
    fitting = [each for each in offered if not features.is_bloated(each)]
    scores = pools.bred(prior.ratios, [*fitting, *drawn], (), ())
    for sample in sorted(scores, key=lambda each: -scores[each]):
        if prior.knows([features.of(sample)])[0]:
            yield sample


def _seed(workload: Workload) -> int:
    return int(workload.digest[:16], 16)


def _sample(schedule: Schedule) -> ScheduleSample:
    return ScheduleSample(schedule.template, schedule.decisions)
