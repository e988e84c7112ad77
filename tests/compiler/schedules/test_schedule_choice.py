"""The schedule of each kernel of a build."""

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import tvm

from tests.compiler.search.test_space import product
from tests.support.small_onnx import matmul_model, save
from tests.support.tuning_records import make_key, make_record
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.schedules import schedule_choice
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.tune.protocol import Schedule
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import WorkloadKey

load_intrinsics("llvm")
TARGET = tvm_target(TargetConfig(name="cpu", threads=1))


def schedule_choice_product(directory: Path) -> ModelFunction:
    file = save(matmul_model(), directory / "m.onnx")
    prepared = prepare(file, shapes={}, into=directory / "p", path="m.onnx")
    (function,) = functions_of(import_in_layout(prepared, TARGET.target, "m.onnx", ("nchw",)))
    return function


def test_a_record_that_does_not_replay_leaves_the_default_schedule(tmp_path: Path) -> None:
    function = schedule_choice_product(tmp_path)
    of_another = msgspec.structs.replace(make_record(), status="ok")
    for records in ((), (of_another,)):
        choice = schedule_choice.chosen_schedule(
            function, {function.workload.digest: records}, TARGET
        )
        assert (choice.main, choice.record) == (None, None)


def test_a_schedule_stays_where_an_earlier_build_had_the_same(tmp_path: Path) -> None:
    choice = schedule_choice.chosen_schedule(schedule_choice_product(tmp_path), {}, TARGET, "prior")
    assert choice.picked is not None
    key = WorkloadKey(choice.function.workload.digest, TARGET.key)
    mark = mark_of(schedule_choice.record_id(key, choice.picked))
    assert schedule_choice.as_before([choice], HowBuilt(kept=(mark,)), TARGET.key) == [choice]
    for other in ((), (mark + 1,)):
        (found,) = schedule_choice.as_before([choice], HowBuilt(kept=other), TARGET.key)
        assert (found.main, found.schedule) == (None, None)


def test_a_neighbours_record_that_is_picked_counts_as_transferred(tmp_path: Path) -> None:
    """Each pick is offered as a neighbour's, until nothing better is found beside it."""
    function = schedule_choice_product(tmp_path)
    choice = schedule_choice.chosen_schedule(function, {}, TARGET, "prior")
    for _ in range(20):
        if choice.picked is None:
            break
        near = make_record(
            "another", template=choice.picked.template, decisions=choice.picked.decisions
        )
        records = {function.workload.digest: (near,)}
        choice = schedule_choice.chosen_schedule(function, records, TARGET, "transfer")
    assert choice.record is not None
    assert choice.record.key == make_key("another")


def test_a_pick_that_computed_other_numbers_before_is_not_picked_again(tmp_path: Path) -> None:
    function = schedule_choice_product(tmp_path)
    pick = schedule_choice.chosen_schedule(function, {}, TARGET, "prior").picked
    assert pick is not None
    wrong = make_record(status="wrong", template=pick.template, decisions=pick.decisions)
    records = {function.workload.digest: (wrong,)}
    assert schedule_choice.chosen_schedule(function, records, TARGET, "prior").picked not in {
        None,
        pick,
    }


def test_kernels_without_their_schedule_have_the_default_one(tmp_path: Path) -> None:
    one = schedule_choice_product(tmp_path)
    other = msgspec.structs.replace(one, name="other")
    chosen = [
        schedule_choice.ScheduleChoice(each, object(), make_record()) for each in (one, other)
    ]
    left = schedule_choice.without_schedules(chosen, {"other"})
    assert left == [chosen[0], schedule_choice.ScheduleChoice(other, None, None)]


# The choice among neighbours' schedules: the likeliest few are tried, in the better of two
# adaptations.

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


def test_what_is_expected_to_be_fast_comes_before_what_is_near() -> None:
    space = space_of(128)
    slow_first = sorted(offered(space, 16), key=lambda schedule: lanes([schedule]))
    found = schedule_choice.transferred_schedules(slow_first, space, lanes)
    assert len(found.fitting) == schedule_choice.MAX_TRANSFERRED
    tried = lanes([s for s in described(space, found.fitting) if s])
    assert sum(tried) > sum(lanes(slow_first[: schedule_choice.MAX_TRANSFERRED]))


def test_a_schedule_of_another_shape_is_tried_in_two_adaptations() -> None:
    """500 is not a multiple of what 512 is split by: one is TVM's own repair, the
    other has the nearest divisors."""
    space = space_of(500)
    found = schedule_choice.transferred_schedules(offered(space_of(512), 2), space, None)
    assert 2 < len(found.fitting) <= 4
    assert None not in described(space, found.fitting)


def test_what_fits_in_neither_way_is_counted() -> None:
    space = space_of(128)
    good, other = offered(space, 2)
    foreign = Schedule("of another workload", good.decisions)
    hostile = msgspec.structs.replace(
        other, decisions=(*other.decisions[:-1], (other.decisions[-1][0], (-5,)))
    )
    found = schedule_choice.transferred_schedules([foreign, good, hostile], space, lanes)
    assert described(space, found.fitting) == [good]
    assert found.misfits == 2
