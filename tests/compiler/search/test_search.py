"""Proposals are new, legal, and better than chance once something is known."""

import math
import random
import statistics
from typing import Any

import msgspec
import pytest
import tvm
import tvm_ffi
from tvm import te

from tests.support.present import present
from tests.support.simulated.cuda_intrinsics import load_cuda_intrinsics
from tunegate.artifacts.tasks import Instruction, ScheduleSource
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.space import DesignSpace, trace_signature
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Candidate, Measured, Schedule
from tunegate.tune.samples import SampleSpace, ScheduleSample

load_intrinsics("llvm")
CPU = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})


def search(target: Any = CPU, size: int = 128, **more: Any) -> TaskSearch:
    fields = {"seed": 1, **more}
    return TaskSearch(canonical_workload(product(size, size, size)), target, **fields)


def informed(seed: int = 2) -> TaskSearch:
    return search(seed=seed, prior=prior_of("llvm"))


def sampled(count: int) -> list[Schedule]:
    """Schedules of the first batch, behind the default one."""
    return [c.schedule for c in search().propose(count, ()).candidates if c.origin == "search"]


def transferred(count: int) -> list[tuple[ScheduleSource, Schedule]]:
    return [("transfer", schedule) for schedule in sampled(count)]


def added() -> Any:
    a = te.placeholder((4, 3), name="a")
    b = te.compute((4, 3), lambda i, j: a[i, j] + 1.0, name="b")
    return te.create_prim_func([a, b])


def results(candidates: tuple[Candidate, ...]) -> list[Measured]:
    """Results in which the innermost factor of the first tile decides all."""
    return [Measured(number=c.number, status="ok", nanoseconds=(time_of(c),)) for c in candidates]


def time_of(candidate: Candidate) -> int:
    tiles = [values for _, values in candidate.schedule.decisions if len(values) > 1]
    return 10**6 // max(1, tiles[0][-1]) if tiles else 10**7


def test_the_first_batch_is_the_default_schedule_and_different_others() -> None:
    first = search().propose(8, ()).candidates
    assert [c.origin for c in first] == ["default", *["search"] * 8]
    assert len({c.schedule for c in first}) == 9


def test_what_is_known_from_before_picks_the_first_batch() -> None:
    """The innermost loop of a product is over columns: what was measured
    elsewhere says that it is to be wide."""
    likely = informed().propose(8, ()).candidates
    assert sum(c.reason == "predicted" for c in likely) >= 6
    chance = search().propose(8, ()).candidates
    assert {c.reason for c in chance} == {"random"}
    assert statistics.median(map(width, likely[1:])) >= 8
    assert statistics.median(map(width, chance[1:])) < 8


def test_of_a_task_that_has_no_tiles_nothing_is_known_from_before() -> None:
    tiny = TaskSearch(canonical_workload(added()), CPU, seed=1, prior=prior_of("llvm"))
    assert {c.reason for c in tiny.propose(8, ()).candidates} == {"random"}


def width(candidate: Candidate) -> int:
    _, columns, *_ = (values for _, values in candidate.schedule.decisions if len(values) > 2)
    return columns[-1]


def test_what_is_known_decides_what_comes_next() -> None:
    mine = search()
    for _ in range(6):
        mine.learn(results(mine.propose(8, ()).candidates))
    predicted = [c for c in mine.propose(8, ()).candidates if c.reason == "predicted"]
    assert len(predicted) >= 4
    assert all(time_of(c) <= 10**6 // 16 for c in predicted)


def test_candidates_say_what_the_prior_expects_of_them() -> None:
    default, *others = informed(seed=1).propose(8, ()).candidates
    assert default.expected is None
    assert all(0.0 < (each.expected or 0.0) < 1.5 for each in others)
    assert all(each.expected is None for each in search().propose(8, ()).candidates)


def test_nothing_is_proposed_twice() -> None:
    mine = search()
    schedules = []
    for _ in range(6):
        proposed = mine.propose(8, ()).candidates
        mine.learn(results(proposed))
        schedules += [c.schedule for c in proposed]
    assert len(set(schedules)) == len(schedules)


def test_what_would_keep_the_compiler_busy_is_never_proposed() -> None:
    """One in twenty samples of this product has a copy that is unrolled into hundreds of
    statements."""
    mine = search(size=512)
    assert any(
        mine._features.is_hopeless(sample, "llvm")
        for sample in SampleSpace(mine.space.sampling(), random.Random(1)).pool([], 512)
    )
    for _ in range(6):
        proposed = mine.propose(8, ()).candidates
        mine.learn(results(proposed))
        samples = [ScheduleSample(c.schedule.template, c.schedule.decisions) for c in proposed[-8:]]
        assert not any(mine._features.is_hopeless(sample, "llvm") for sample in samples)


def test_a_small_space_is_exhausted_and_says_so() -> None:
    tiny = TaskSearch(canonical_workload(added()), CPU, seed=1)
    for _ in range(20):
        proposed = tiny.propose(8, ())
        tiny.learn(results(proposed.candidates))
        if proposed.exhausted:
            return
    raise AssertionError


def test_samples_that_a_gpu_cannot_run_are_never_proposed_and_learned_from() -> None:
    """No GPU is needed to know its limits."""
    load_cuda_intrinsics()
    gpu = tvm.target.Target(
        {
            "kind": "cuda",
            "arch": "sm_80",
            "max_threads_per_block": 1024,
            "max_shared_memory_per_block": 49152,
            "thread_warp_size": 32,
        }
    )
    mine = search(gpu, 512)
    first = mine.propose(8, ()).candidates
    assert sum(candidate.reason == "predicted" for candidate in first) >= 6, "by analysis"
    assert all(0 < each.expected < 1 for each in first if each.expected is not None)
    mine.learn(results(first))
    later = mine.propose(8, ()).candidates
    mine.learn(results(later))
    assert len(later) >= 4
    last = mine.propose(8, ()).candidates
    assert len(last) >= 4
    tried = [candidate for candidate in (*later, *last) if candidate.origin == "search"]
    samples = [ScheduleSample(each.schedule.template, each.schedule.decisions) for each in tried]
    assert not any(mine._features.is_hopeless(sample, "cuda") for sample in samples)


def test_seeds_come_first_and_what_a_batch_has_no_room_for_comes_with_the_next() -> None:
    mine = search()
    first = mine.propose(4, [("exact", schedule) for schedule in sampled(6)]).candidates
    assert [c.origin for c in first] == ["default", *["exact"] * 4]
    second = mine.propose(4, ()).candidates
    assert [c.origin for c in second] == ["exact", "exact", "search", "search"]


def test_a_seed_that_cannot_be_applied_is_a_misfit_and_one_given_twice_is_not() -> None:
    (known,) = sampled(1)
    foreign = Schedule("of another workload", known.decisions)
    proposed = search().propose(0, [("transfer", s) for s in (known, foreign, known)])
    assert proposed.misfits == 1
    assert known in {c.schedule for c in proposed.candidates if c.origin == "transfer"}


def test_of_many_neighbours_the_likeliest_few_are_tried_and_not_the_nearest() -> None:
    first = informed().propose(16, transferred(40)).candidates
    tried = [c for c in first if c.origin == "transfer"]
    assert len(tried) == 8
    assert statistics.median(map(width, tried)) >= 8
    assert len([c for c in first if c.origin == "search"]) == 8


def test_what_is_transferred_and_what_is_expected_share_a_batch() -> None:
    offered = transferred(6)
    mine = informed()
    first = mine.propose(3, offered).candidates
    assert [c.origin for c in first] == ["default", "transfer", "transfer", "search"]
    assert first[-1].reason == "predicted"
    assert [c.origin for c in mine.propose(1, ()).candidates] == ["transfer"]
    uninformed = search().propose(3, offered).candidates
    assert [c.origin for c in uninformed] == ["default", *["transfer"] * 3]


def test_what_was_measured_elsewhere_comes_before_all_else() -> None:
    first = informed().propose(4, [("exact", schedule) for schedule in sampled(4)]).candidates
    assert [c.origin for c in first] == ["default", *["exact"] * 4]


def test_without_a_search_all_seeds_are_taken() -> None:
    proposed = search().propose(0, [("exact", schedule) for schedule in sampled(6)])
    assert [c.origin for c in proposed.candidates] == ["default", *["exact"] * 6]
    assert not proposed.exhausted


def test_a_search_goes_on_from_what_an_earlier_one_has_found() -> None:
    """Its child was killed: nothing is measured twice, and no number is used twice."""
    measured = search().propose(8, ()).candidates
    known = [(c.schedule, time_of(c) / 1e6) for c in measured]
    second = search(first_number=1_000_001)
    second.remember(known)
    later = second.propose(8, ()).candidates
    assert {c.origin for c in later} == {"search"}  # and no default schedule
    assert {c.schedule for c in later}.isdisjoint({schedule for schedule, _ in known})
    assert min(c.number for c in later) == 1_000_001


# The space of schedules of a workload.


def product(m: int, n: int, k: int, dtype: str = "float32", name: str = "C") -> Any:
    a = te.placeholder((m, k), dtype, name="A" + name)
    b = te.placeholder((k, n), dtype, name="B" + name)
    axis = te.reduce_axis((0, k), "k" + name)
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name=name)
    return te.create_prim_func([a, b, c])


def scaled(factor: float) -> Any:
    a = te.placeholder((8, 8), "float32", name="A")
    return te.create_prim_func([a, te.compute((8, 8), lambda i, j: a[i, j] * factor, name="B")])


def digest(function: Any) -> str:
    return canonical_workload(function).digest


def test_names_do_not_count() -> None:
    assert digest(product(32, 32, 32)) == digest(product(32, 32, 32, name="Other"))


@pytest.mark.parametrize(
    "other", [product(32, 32, 64), product(32, 64, 32), product(32, 32, 32, "float16")]
)
def test_an_extent_or_a_dtype_makes_another_workload(other: Any) -> None:
    assert digest(product(32, 32, 32)) != digest(other)


def test_shapes_of_one_kind_share_a_skeleton_and_differ_in_extents() -> None:
    small = canonical_workload(product(64, 64, 64)).shape
    large = canonical_workload(product(512, 128, 2048)).shape
    assert small.skeleton == large.skeleton
    assert len(small.extents) == len(large.extents)
    assert set(large.extents) == {512, 128, 2048}


def test_a_dtype_makes_another_skeleton() -> None:
    half = canonical_workload(product(64, 64, 64, "float16")).shape
    assert half.skeleton != canonical_workload(product(64, 64, 64)).shape.skeleton


def test_a_scalar_weight_folded_into_the_code_does_not_make_another_workload() -> None:
    assert digest(scaled(0.25)) == digest(scaled(0.75))


def test_the_canonical_module_computes_the_same() -> None:
    workload: Workload = canonical_workload(product(32, 32, 32, name="Odd name"))
    assert tvm.s_tir.Schedule(workload.module).get_sblock("b1") is not None


def space_of(function: Any, seed: int = 1) -> DesignSpace:
    return DesignSpace(canonical_workload(function), CPU, seed)


def described(space: DesignSpace, count: int = 12) -> list[tuple[Schedule, Any]]:
    return [
        (present(space.describe(schedule.trace)), schedule)
        for schedule in space.sample(count, random.Random(3))
    ]


def test_the_templates_do_not_depend_on_the_seed() -> None:
    function = product(64, 64, 64)
    assert set(space_of(function, 1).templates) == set(space_of(function, 99).templates)


def test_decisions_replay_to_the_very_same_module_in_another_space() -> None:
    mine = space_of(product(64, 48, 80))
    theirs = space_of(product(64, 48, 80, name="renamed"), seed=7)
    for schedule, sampled in described(mine):
        assert tvm_ffi.structural_equal(present(theirs.replay(schedule)).mod, sampled.mod)


def test_a_source_of_another_shape_is_refitted_to_exact_divisors() -> None:
    source = space_of(product(512, 512, 512))
    here = space_of(product(500, 500, 500))
    for schedule, _ in described(source, 4):
        moved = present(here.refit(schedule))
        tiles = [values for _, values in moved.decisions if len(values) > 2]
        assert tiles
        assert {math.prod(values) for values in tiles} == {500}


@pytest.mark.parametrize("factor", [0, -1, 2**40])
def test_a_hostile_factor_is_refused_before_tvm_sees_it(factor: int) -> None:
    space = space_of(product(64, 64, 64))
    schedule, _ = described(space, 1)[0]
    index, values = schedule.decisions[0]
    hostile = ((index, (factor, *values[1:])), *schedule.decisions[1:])
    assert space.replay(msgspec.structs.replace(schedule, decisions=hostile)) is None


def test_a_missing_decision_or_a_foreign_template_is_refused() -> None:
    space = space_of(product(64, 64, 64))
    schedule, _ = described(space, 1)[0]
    assert space.replay(Schedule(schedule.template, schedule.decisions[1:])) is None
    assert space.replay(Schedule("0" * 64, schedule.decisions)) is None
    out_of_range = ((10**8, (1, 1)), *schedule.decisions)
    assert space.replay(Schedule(schedule.template, out_of_range)) is None


PURE = {"GetSBlock", "GetLoops", "SamplePerfectTile"}


def trace(block: str, first: str = "v") -> list[Instruction]:
    return [
        ("GetSBlock", [], [block, "main"], [f"{first}0"]),
        ("GetLoops", [f"{first}0"], [], [f"{first}1", f"{first}2"]),
        ("SamplePerfectTile", [f"{first}1"], [2, 64], [f"{first}3", f"{first}4"]),
        ("Split", [f"{first}1", f"{first}3", f"{first}4"], [True, False], [f"{first}5"]),
    ]


def test_names_of_blocks_and_variables_do_not_count() -> None:
    assert (
        trace_signature(trace("conv2d"), PURE).text == trace_signature(trace("b0", "x"), PURE).text
    )


def test_two_blocks_are_not_one() -> None:
    one = [*trace("a"), ("GetSBlock", [], ["a", "main"], ["v9"]), unroll("v9")]
    two = [*trace("a"), ("GetSBlock", [], ["b", "main"], ["v9"]), unroll("v9")]
    assert trace_signature(one, PURE).text != trace_signature(two, PURE).text


def unroll(block: str) -> Instruction:
    return ("Annotate", [block, 16], ["unroll"], [])


def test_what_nobody_uses_is_dropped_and_decisions_move_along() -> None:
    dead: Instruction = ("SamplePerfectTile", ["v2"], [2, 64], ["v7", "v8"])
    longer = trace("a")
    longer.insert(2, dead)
    found = trace_signature(longer, PURE)
    assert found.text == trace_signature(trace("a"), PURE).text
    assert found.renumber([(2, (9, 9)), (3, (4, 8))]) == ((2, (4, 8)),)


def test_any_other_instruction_attribute_or_order_is_another_form() -> None:
    ours = trace_signature(trace("a"), PURE).text
    for place, change in ((0, 0), (2, 2), (3, 2)):
        other: list[Any] = [list(instruction) for instruction in trace("a")]
        other[place][change] = "Other" if change == 0 else [3, 64]
        assert trace_signature(other, PURE).text != ours


def test_the_number_of_cores_does_not_count() -> None:
    def parallel(extent: int) -> Instruction:
        return ("Annotate", ["v0", extent], ["meta_schedule.parallel"], [])

    found = trace_signature([*trace("a"), parallel(16)], PURE).text
    assert found == trace_signature([*trace("a"), parallel(64)], PURE).text
