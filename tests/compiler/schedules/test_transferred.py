"""The choice among neighbours' schedules: the likeliest few are tried, in
the better of two adaptations."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import tvm

from tests.compiler.search.test_space import product
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.schedules.schedule_choice import MAX_TRANSFERRED, transferred_schedules
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.tune.protocol import Schedule

load_intrinsics("llvm")
CPU = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})


def space_of(size: int) -> DesignSpace:
    return DesignSpace(canonical_workload(product(size, size, size)), CPU)


def offered(space: DesignSpace, count: int) -> list[Schedule]:
    sampled = space.sample(4 * count, random.Random(1))
    found = dict.fromkeys(s for s in map(space.describe, (x.trace for x in sampled)) if s)
    return list(found)[:count]


def described(space: DesignSpace, fitting: Sequence[tvm.s_tir.Schedule]) -> list[Schedule | None]:
    return [space.describe(schedule.trace) for schedule in fitting]


def lanes(schedules: Sequence[Schedule]) -> list[float]:
    """Scores by which a wide innermost loop over columns is all that counts."""
    tiles = [[v for _, v in schedule.decisions if len(v) > 2] for schedule in schedules]
    return [float(columns[-1]) for _, columns, *_ in tiles]


def test_without_knowledge_the_nearest_come_first() -> None:
    space = space_of(128)
    mine = offered(space, 12)
    found = transferred_schedules(mine, space, None)
    assert (
        described(space, found.fitting) == mine[:MAX_TRANSFERRED]
    )  # one adaptation: they fit as they are
    assert found.misfits == 0


def test_what_is_expected_to_be_fast_comes_before_what_is_near() -> None:
    space = space_of(128)
    slow_first = sorted(offered(space, 16), key=lambda schedule: lanes([schedule]))
    found = transferred_schedules(slow_first, space, lanes)
    assert len(found.fitting) == MAX_TRANSFERRED
    tried = lanes([s for s in described(space, found.fitting) if s])
    assert sum(tried) > sum(lanes(slow_first[:MAX_TRANSFERRED]))


def test_between_equals_the_nearest_is_first() -> None:
    space = space_of(128)
    mine = offered(space, 6)
    found = transferred_schedules(mine, space, lambda schedules: [1.0] * len(schedules))
    assert described(space, found.fitting) == mine


def test_a_schedule_of_another_shape_is_tried_in_two_adaptations() -> None:
    """500 is not a multiple of what 512 is split by: one is TVM's own repair, the
    other has the nearest divisors."""
    space = space_of(500)
    found = transferred_schedules(offered(space_of(512), 2), space, None)
    assert 2 < len(found.fitting) <= 4
    assert None not in described(space, found.fitting)


def test_what_fits_in_neither_way_is_counted() -> None:
    space = space_of(128)
    good, other = offered(space, 2)
    foreign = Schedule("of another workload", good.decisions)
    hostile = msgspec.structs.replace(
        other, decisions=(*other.decisions[:-1], (other.decisions[-1][0], (-5,)))
    )
    found = transferred_schedules([foreign, good, hostile], space, lanes)
    assert described(space, found.fitting) == [good]
    assert found.misfits == 2
