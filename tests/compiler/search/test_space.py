from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
import tvm
import tvm_ffi

from tests.compiler.search.test_workload import product
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.tune.protocol import Schedule

load_intrinsics("llvm")
TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})


def space_of(workload: Workload, seed: int = 1) -> DesignSpace:
    return DesignSpace(workload, TARGET, seed)


def described(space: DesignSpace, count: int = 12) -> list[tuple[Schedule, Any]]:
    found = []
    for schedule in space.sample(count, random.Random(3)):
        name = space.describe(schedule.trace)
        assert name is not None
        found.append((name, schedule))
    return found


def test_the_templates_do_not_depend_on_the_seed() -> None:
    workload = canonical_workload(product(64, 64, 64))
    assert set(space_of(workload, 1).templates) == set(space_of(workload, 99).templates)


def test_decisions_replay_to_the_very_same_module_in_another_space() -> None:
    mine = space_of(canonical_workload(product(64, 48, 80)))
    theirs = space_of(canonical_workload(product(64, 48, 80, name="renamed")), seed=7)
    for schedule, sampled in described(mine):
        replayed = theirs.replay(schedule)
        assert replayed is not None
        assert tvm_ffi.structural_equal(replayed.mod, sampled.mod)


def test_a_source_of_another_shape_is_refitted_to_exact_divisors() -> None:
    source = space_of(canonical_workload(product(512, 512, 512)))
    here = space_of(canonical_workload(product(500, 500, 500)))
    for schedule, _ in described(source, 4):
        moved = here.refit(schedule)
        assert moved is not None
        tiles = [values for _, values in moved.decisions if len(values) > 2]
        assert tiles
        for values in tiles:
            extent = 1
            for value in values:
                extent *= value
            assert extent == 500


@pytest.mark.parametrize("factor", [0, -1, 2**40])
def test_a_hostile_factor_is_refused_before_tvm_sees_it(factor: int) -> None:
    space = space_of(canonical_workload(product(64, 64, 64)))
    schedule, _ = described(space, 1)[0]
    index, values = schedule.decisions[0]
    hostile = ((index, (factor, *values[1:])), *schedule.decisions[1:])
    assert space.replay(msgspec.structs.replace(schedule, decisions=hostile)) is None


def test_a_missing_decision_or_a_foreign_template_is_refused() -> None:
    space = space_of(canonical_workload(product(64, 64, 64)))
    schedule, _ = described(space, 1)[0]
    assert space.replay(Schedule(schedule.template, schedule.decisions[1:])) is None
    assert space.replay(Schedule("0" * 64, schedule.decisions)) is None
    out_of_range = ((10**8, (1, 1)), *schedule.decisions)
    assert space.replay(Schedule(schedule.template, out_of_range)) is None
