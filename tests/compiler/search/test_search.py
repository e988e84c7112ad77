"""What is proposed next: new, legal, and better than chance once something is known."""

import random
import statistics
from typing import Any

import tvm
from tvm import te

from tests.compiler.search.test_space import product
from tests.support.simulated.cuda_intrinsics import load_cuda_intrinsics
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.search.workload import canonical_workload
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import Candidate, Measured, Schedule
from tunegate.tune.samples import SampleSpace, ScheduleSample

load_intrinsics("llvm")
CPU = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})


def search(target: Any = CPU, size: int = 128) -> TaskSearch:
    return TaskSearch(canonical_workload(product(size, size, size)), target, seed=1)


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
    workload = canonical_workload(product(128, 128, 128))
    informed = TaskSearch(workload, CPU, seed=2, prior=prior_of("llvm")).propose(8, ()).candidates
    assert sum(c.reason == "predicted" for c in informed) >= 6
    chance = search().propose(8, ()).candidates
    assert {c.reason for c in chance} == {"random"}
    assert statistics.median(map(width, informed[1:])) >= 8
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
        proposed = mine.propose(8, ()).candidates
        mine.learn(results(proposed))
    last = mine.propose(8, ()).candidates
    predicted = [c for c in last if c.reason == "predicted"]
    assert len(predicted) >= 4
    assert all(time_of(c) <= 10**6 // 16 for c in predicted)


def test_candidates_say_what_the_prior_expects_of_them() -> None:
    mine = TaskSearch(
        canonical_workload(product(128, 128, 128)), CPU, seed=1, prior=prior_of("llvm")
    )
    default, *others = mine.propose(8, ()).candidates
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
    sampled = [c.schedule for c in search().propose(6, ()).candidates if c.origin == "search"]
    mine = search()
    first = mine.propose(4, [("exact", schedule) for schedule in sampled]).candidates
    assert [c.origin for c in first] == ["default", *["exact"] * 4]
    second = mine.propose(4, ()).candidates
    assert [c.origin for c in second] == ["exact", "exact", "search", "search"]


def test_a_seed_that_cannot_be_applied_is_a_misfit_and_one_given_twice_is_not() -> None:
    sampled = next(c.schedule for c in search().propose(1, ()).candidates if c.origin == "search")
    foreign = Schedule("of another workload", sampled.decisions)
    proposed = search().propose(0, [("transfer", s) for s in (sampled, foreign, sampled)])
    assert proposed.misfits == 1
    assert sampled in {c.schedule for c in proposed.candidates if c.origin == "transfer"}


def test_of_many_neighbours_the_likeliest_few_are_tried_and_not_the_nearest() -> None:
    offered = [c.schedule for c in search().propose(40, ()).candidates if c.origin == "search"]
    workload = canonical_workload(product(128, 128, 128))
    informed = TaskSearch(workload, CPU, seed=2, prior=prior_of("llvm"))
    first = informed.propose(16, [("transfer", schedule) for schedule in offered]).candidates
    tried = [c for c in first if c.origin == "transfer"]
    assert len(tried) == 8
    assert statistics.median(map(width, tried)) >= 8
    assert len([c for c in first if c.origin == "search"]) == 8


def test_what_is_transferred_and_what_is_expected_share_a_batch() -> None:
    offered = [c.schedule for c in search().propose(6, ()).candidates if c.origin == "search"]
    workload = canonical_workload(product(128, 128, 128))
    informed = TaskSearch(workload, CPU, seed=2, prior=prior_of("llvm"))
    first = informed.propose(3, [("transfer", schedule) for schedule in offered]).candidates
    assert [c.origin for c in first] == ["default", "transfer", "transfer", "search"]
    assert first[-1].reason == "predicted"
    alone = informed.propose(1, ()).candidates
    assert [c.origin for c in alone] == ["transfer"]
    uninformed = search().propose(3, [("transfer", schedule) for schedule in offered]).candidates
    assert [c.origin for c in uninformed] == ["default", *["transfer"] * 3]


def test_what_was_measured_elsewhere_comes_before_all_else() -> None:
    offered = [c.schedule for c in search().propose(4, ()).candidates if c.origin == "search"]
    workload = canonical_workload(product(128, 128, 128))
    informed = TaskSearch(workload, CPU, seed=2, prior=prior_of("llvm"))
    first = informed.propose(4, [("exact", schedule) for schedule in offered]).candidates
    assert [c.origin for c in first] == ["default", *["exact"] * 4]


def test_without_a_search_all_seeds_are_taken() -> None:
    sampled = [c.schedule for c in search().propose(6, ()).candidates if c.origin == "search"]
    proposed = search().propose(0, [("exact", schedule) for schedule in sampled])
    assert [c.origin for c in proposed.candidates] == ["default", *["exact"] * 6]
    assert not proposed.exhausted


def test_a_search_goes_on_from_what_an_earlier_one_has_found() -> None:
    """Its child was killed: nothing is measured twice, and no number is used twice."""
    first = search()
    measured = first.propose(8, ()).candidates
    known = [(c.schedule, time_of(c) / 1e6) for c in measured]
    second = TaskSearch(
        canonical_workload(product(128, 128, 128)), CPU, seed=1, first_number=1_000_001
    )
    second.remember(known)
    later = second.propose(8, ()).candidates
    assert {c.origin for c in later} == {"search"}  # and no default schedule
    assert {c.schedule for c in later}.isdisjoint({schedule for schedule, _ in known})
    assert min(c.number for c in later) == 1_000_001
