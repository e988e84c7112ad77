import random
from collections.abc import Iterable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

from tests.support.plans import MISS, plan_of
from tests.support.tuning_tasks import make_outcome, make_planned, make_record, make_task
from tests.support.worker_requests import make_candidate
from tests.tune.test_prior import SKETCH
from tunegate.artifacts.outcomes import CandidateCost
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.config import BudgetConfig
from tunegate.tune import task_history
from tunegate.tune.batches import OpenBatches
from tunegate.tune.candidate_filter import picks, rank_correlation
from tunegate.tune.expected_time import answers_next_run
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.protocol import Candidate, Measured, Schedule
from tunegate.tune.samples import copied_statements, exceeds_a_gpu, is_bloated
from tunegate_cache.format.records import (
    Decision,
    DeviceFingerprint,
    Provenance,
    RecordStatus,
    Toolchain,
    TuningRecord,
)

DEVICE = DeviceFingerprint(name="here", kind="cpu", units=1, memory_bytes=1)


def history() -> task_history.TaskHistory:
    return task_history.TaskHistory(
        make_planned(make_task("a")),
        device=DEVICE,
        toolchain=Toolchain(tvm="1", ffi="1"),
        source=Provenance(),
    )


def candidate(task: task_history.TaskHistory, number: int) -> Candidate:
    decision: Decision = (1, (number,))
    return make_candidate(
        number,
        workload=task.workload,
        origin="default" if number == 0 else "search",
        schedule=Schedule("", ()) if number == 0 else Schedule("t", (decision,)),
    )


def begun(
    numbers: Iterable[int] = range(3), **settings: int
) -> tuple[task_history.TaskHistory, OpenBatches, list[Candidate]]:
    """A task, and a batch of its candidates that is on its way."""
    task = history()
    batches = OpenBatches([task.workload])
    candidates = [candidate(task, n) for n in numbers]
    batches.start(task, candidates, **settings)
    return task, batches, candidates


def measured(number: int) -> Measured:
    return Measured(number=number, status="ok", nanoseconds=(1000 + number,), run_seconds=0.1)


def test_a_batch_is_back_with_its_last_candidate() -> None:
    task, batches, candidates = begun()
    assert batches.in_flight(task.workload) == 3
    back = [batches.come_back(c, measured(c.number), 5).is_back for c in candidates]
    assert back == [False, False, True]
    assert (task.trials, batches.in_flight(task.workload)) == (2, 0)


def test_a_failure_from_outside_is_a_trial_and_no_record() -> None:
    """The cache would keep the candidate from all later runs."""
    task, batches, candidates = begun()
    died = [
        Measured(number=n, status="runtime", from_outside=from_outside)
        for n, from_outside in ((1, True), (2, False))
    ]
    results = (measured(0), *died)
    *_, batch = [batches.come_back(*pair, 5) for pair in zip(candidates, results, strict=True)]
    assert [record.status for record in batch.records] == ["ok", "runtime"]
    assert (task.trials, batches.to_learn(task.workload)) == (2, results)


def test_what_was_timed_beside_others_is_no_result_before_it_is_checked() -> None:
    task, batches, candidates = begun(at_once=2)
    *_, batch = [batches.come_back(each, measured(each.number), 5) for each in candidates]
    assert (task.trials, batches.to_learn(task.workload)) == (0, ())
    assert batches.in_flight(task.workload) == 3
    assert batches.check(batch, [1]) == [candidates[1]]
    assert (batches.in_flight(task.workload), batch.is_back) == (3, False)
    assert batches.come_back(candidates[1], measured(1), 6).is_back
    assert batches.in_flight(task.workload) == 3
    batches.settle(batch, [measured(n) for n in range(3)], 7)
    assert (task.trials, len(batch.records), batch.trials) == (2, 3, 2)
    assert batches.in_flight(task.workload) == 0
    batches.close(batch)
    assert batches.take_unpublished() == []


def test_a_check_that_is_given_up_leaves_its_candidate_a_trial() -> None:
    _, batches, candidates = begun(range(1, 3), at_once=2)
    *_, batch = [batches.come_back(each, measured(each.number), 5) for each in candidates]
    batches.check(batch, [1])
    assert batches.give_up(candidates[0]).trials == 2


def test_every_result_is_learned_once() -> None:
    task, batches, candidates = begun(range(2))
    batches.come_back(candidates[1], measured(1), 5)
    assert [result.number for result in batches.to_learn(task.workload)] == [1]
    assert batches.to_learn(task.workload) == ()


def test_what_is_given_up_is_no_trial() -> None:
    task, batches, candidates = begun()
    batches.come_back(candidates[0], measured(0), 5)
    batches.give_up(candidates[1])
    batch = batches.give_up(candidates[2])
    assert (batch.is_back, batch.trials, batches.in_flight(task.workload)) == (True, 0, 0)


def test_records_of_an_unfinished_batch_are_not_forgotten() -> None:
    _, batches, candidates = begun()
    batches.come_back(candidates[1], measured(1), 5)
    assert [r.run_nanoseconds for r in batches.take_unpublished()] == [(1001,)]
    assert batches.take_unpublished() == []


# A task of few trials ends with them, unless they contradict what was expected.

AS_EXPECTED = [task_history.Prediction(expected, 1 / expected) for expected in (0.2, 0.4, 0.6, 0.8)]
CONTRADICTED = [task_history.Prediction(1 - expected, ms) for expected, ms in AS_EXPECTED]


def test_one_batch_is_enough_where_it_bears_out_what_was_expected() -> None:
    assert task_history.is_enough(8, 8, AS_EXPECTED)


def test_a_search_goes_on_where_the_model_was_wrong() -> None:
    assert not task_history.is_enough(8, 8, CONTRADICTED)


def test_of_few_candidates_ranks_say_nothing() -> None:
    assert not task_history.disagrees(CONTRADICTED[:3])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), min_size=4, max_size=20))
def test_a_contradiction_is_borne_out_the_other_way_round(pairs: list[tuple[float, float]]) -> None:
    predictions = [task_history.Prediction(*pair) for pair in pairs]
    mirrored = [task_history.Prediction(-expected, ms) for expected, ms in predictions]
    assert not (task_history.disagrees(predictions) and task_history.disagrees(mirrored))


def test_no_task_is_planned_more_than_its_own_limit() -> None:
    budget = BudgetConfig(trials=600, trials_per_task=8)
    (shard,) = plan_of([make_task("a"), make_task("b")], [MISS] * 2, budget=budget).shards
    assert {task.trials for task in shard.tasks} | {shard.budget.trials_per_task} == {8}


@pytest.mark.parametrize(
    ("records", "is_answer"),
    [
        ((), False),
        ((make_record("a", times=3),), False),
        ((make_record("a"),), True),
        ((make_record("other"),), False),
    ],
)
def test_only_its_own_confirmed_record_is_an_answer(
    records: tuple[TuningRecord, ...], is_answer: bool
) -> None:
    assert answers_next_run(make_outcome("a", records=records)) == is_answer


numbers = st.lists(st.integers(-20, 20).map(float), min_size=3, max_size=40)


@given(st.none() | numbers, st.integers(1, 40), st.integers(0, 50), st.integers(0, 2**32))
def test_every_sample_is_picked_once(
    scores: list[float] | None, kinds: int, wanted: int, seed: int
) -> None:
    samples = 12 if scores is None else len(scores)
    alike = [number % kinds for number in range(samples)]
    found = list(picks(scores, alike, wanted, random.Random(seed)))
    assert sorted(pick.sample for pick in found) == list(range(samples))


def test_of_samples_that_are_alike_a_batch_takes_the_best_only() -> None:
    scores = [float(n) for n in range(100)]
    tens = [n // 10 for n in range(100)]
    batches = [list(islice(picks(scores, tens, 4, random.Random(s)), 4)) for s in range(50)]
    predicted = [[p.sample for p in batch if p.reason == "predicted"] for batch in batches]
    assert all(best == [99, 89, 79, 69][: len(best)] for best in predicted)
    assert any(len(best) == 4 for best in predicted)


@given(numbers, st.integers(0, 2**32))
def test_the_rank_correlation_is_spearmans(values: list[float], seed: int) -> None:
    other = random.Random(seed).sample(values, len(values))
    expected = stats.spearmanr(values, other).statistic if len(set(values)) > 1 else 0.0
    assert rank_correlation(values, other) == pytest.approx(expected, abs=1e-9)


def cost(
    build_seconds: float, status: RecordStatus = "ok", origin: ScheduleSource = "search"
) -> CandidateCost:
    return CandidateCost(
        stage="quick",
        origin=origin,
        pick="random",
        status=status,
        build_seconds=build_seconds,
        run_seconds=0.1,
        milliseconds=1.0,
        improved=False,
    )


def test_before_a_few_have_finished_a_candidate_may_take_what_its_place_allows() -> None:
    assert task_history.patience_seconds([]) is None
    assert task_history.patience_seconds([cost(0.5)] * 3) is None


def test_it_is_three_times_the_slowest_and_never_less_than_five_seconds() -> None:
    assert task_history.patience_seconds([cost(0.5)] * 4) == 5.0
    assert task_history.patience_seconds([*[cost(0.5)] * 3, cost(4.0)]) == 12.0


def test_neither_failures_nor_the_default_schedule_make_it_longer() -> None:
    others = [cost(19.0, status="timeout"), cost(19.0, origin="default")]
    assert task_history.patience_seconds([*[cost(0.5)] * 4, *others]) == 5.0


# A copy that is unrolled into hundreds of statements is told before anything is lowered.

INNER = SKETCH.nest or LoopNest(())
"""It copies what the two innermost levels of both axes write."""
OUTER = replace(INNER, copied_at=0)
SLOW: DecisionValues = ((8, 2, 8, 1), (2, 16, 1, 32), (128, 2), (3,))
"""Took 5.7 s to compile with the copy outside, and 0.05 s with it inside, or with none."""


def test_the_statements_are_the_vectors_of_the_tile_that_is_copied() -> None:
    assert copied_statements(INNER, SLOW) == 8
    assert copied_statements(OUTER, SLOW) == 256


def test_what_took_a_hundred_times_as_long_to_compile_is_rejected() -> None:
    assert is_bloated(OUTER, SLOW)
    assert not is_bloated(INNER, SLOW)
    assert not is_bloated(replace(OUTER, copied_at=None), SLOW)


def test_a_copy_that_stays_a_loop_is_not_code() -> None:
    less = (*SLOW[:3], (2,))
    assert copied_statements(OUTER, less) == 0
    assert copied_statements(replace(OUTER, unrolled_by=None), SLOW) == 0


GPU = LoopNest(tuple((place, level) for level in range(5) for place in (0, 1)))


@pytest.mark.parametrize(
    ("rows", "columns", "is_spilled"),
    [
        ((8, 2, 16, 4, 2), (8, 1, 16, 1, 8), False),  # 128 sums in each of 256 threads
        ((8, 4, 16, 4, 2), (8, 1, 16, 1, 8), True),  # 256, and a thread has 255 registers
        ((8, 2, 32, 4, 2), (8, 1, 32, 1, 8), True),  # 128 in each of 1,024 threads
    ],
)
def test_sums_that_need_more_registers_than_a_gpu_has_are_not_tried(
    rows: tuple[int, ...], columns: tuple[int, ...], is_spilled: bool
) -> None:
    assert exceeds_a_gpu(GPU, (rows, columns)) is is_spilled
    assert not exceeds_a_gpu(INNER, (rows[:4], columns[:4]))


@pytest.mark.parametrize(
    ("threads", "is_of_warps", "is_refused"),
    [
        *((16, False, True), (32, False, False), (1024, False, False), (2048, False, True)),
        *((1, True, False), (32, True, False), (64, True, True)),
    ],
)
def test_a_block_has_at_least_a_warp_and_at_most_what_the_card_has(
    threads: int, is_of_warps: bool, is_refused: bool
) -> None:
    """For tensor cores the third level has warps, and the second one blocks, not sums."""
    nest = replace(GPU, least_threads=32, most_threads=1024, is_of_warps=is_of_warps)
    blocks = 512 if is_of_warps else 1
    assert exceeds_a_gpu(nest, ((8, blocks, threads, 1, 1), (8, 1, 1, 1, 1))) is is_refused
