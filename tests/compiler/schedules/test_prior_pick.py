"""The prior's pick: one for each workload, target and prior, or none where the prior knows
nothing."""

from __future__ import annotations

import random

import tvm

from tests.compiler.search.test_search import added
from tests.compiler.search.test_workload import product
from tests.support.models import grouped_convolutions
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.algorithm_variants import with_algorithm
from tunegate.compiler.schedules.schedule_choice import prior_pick
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Schedule
from tunegate.tune.sample_features import SampleFeatures
from tunegate.tune.samples import ScheduleSample

load_intrinsics("llvm")
CPU = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 1})
OF_PRODUCT = canonical_workload(product(128, 128, 128))


def picked(
    workload: Workload, failed: tuple[Schedule, ...] = (), offered: tuple[Schedule, ...] = ()
) -> Schedule | None:
    """The pick of a space that is made anew, as another process would make it."""
    space = DesignSpace(workload, CPU)
    prior = prior_of("llvm")
    found = prior_pick(workload, CPU, space, prior, failed=failed, offered=offered)
    return None if found is None else found.schedule


def expected(*schedules: Schedule) -> list[float]:
    space, prior = DesignSpace(OF_PRODUCT, CPU), prior_of("llvm")
    assert prior is not None
    features = SampleFeatures(space.sampling(), space.sketches())
    rows = [features.of(ScheduleSample(each.template, each.decisions)) for each in schedules]
    return [float(ratio) for ratio in prior.ratios(rows)]


def test_a_pick_hangs_on_nothing_but_workload_target_and_prior() -> None:
    again = canonical_workload(product(128, 128, 128))
    assert picked(OF_PRODUCT) == picked(again) is not None


def test_a_pick_replays_as_it_is() -> None:
    found = picked(OF_PRODUCT)
    assert found is not None
    assert DesignSpace(OF_PRODUCT, CPU).reproduces(found)


def test_more_is_expected_of_the_pick_than_of_random_schedules() -> None:
    traces = (s.trace for s in DesignSpace(OF_PRODUCT, CPU).sample(16, random.Random(1)))
    space = DesignSpace(OF_PRODUCT, CPU)
    others = [found for trace in traces if (found := space.describe(trace)) is not None]
    found = picked(OF_PRODUCT)
    assert found is not None
    mine, *rest = expected(found, *others)
    assert mine > max(rest)


def test_what_is_offered_takes_part() -> None:
    """A pick that is offered again is in every pool, so that what is picked is as good at least."""
    best = picked(OF_PRODUCT)
    assert best is not None
    again = picked(OF_PRODUCT, offered=(best,))
    assert again is not None
    mine, offered = expected(again, best)
    assert mine >= offered


def test_what_failed_before_is_not_picked_again() -> None:
    first = picked(OF_PRODUCT)
    assert first is not None
    assert picked(OF_PRODUCT, failed=(first,)) not in {None, first}


def test_the_prior_abstains_where_no_loops_are_tiled() -> None:
    assert picked(canonical_workload(added())) is None


def test_the_prior_abstains_far_from_all_that_was_measured() -> None:
    """Sums of millions of numbers: none of its operators has more than thousands."""
    assert picked(canonical_workload(product(16, 2**26, 16))) is None


def test_without_a_prior_nothing_is_picked() -> None:
    space = DesignSpace(OF_PRODUCT, CPU)
    assert prior_pick(OF_PRODUCT, CPU, space, prior_of("cuda")) is None


def test_grouped_convolutions_are_left_to_their_default_schedule() -> None:
    grouped = grouped_convolutions.workload(grouped_convolutions.Shape())
    assert picked(grouped) is None
    direct = with_algorithm(grouped.module, "direct")["main"]
    assert picked(canonical_workload(direct)) is None
