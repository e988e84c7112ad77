"""The prior before the first trial, and its worth for operators that it has not seen."""

import math
import random
import statistics
from collections.abc import Sequence

import msgspec
import pytest

from tests.support.tuning_tasks import DEVICE, exact, make_record, make_task, transfer
from tests.tune.test_gpu_analysis import GOOD as GPU_TILES
from tests.tune.test_gpu_analysis import KERNEL
from tests.tune.test_gpu_analysis import NEST as GPU_NEST
from tunegate.artifacts.changes import Side
from tunegate.artifacts.plans import PlannedTask
from tunegate.artifacts.tasks import Claims, RecordOrigin, ResolvedTask, Skipped
from tunegate.tune.candidate_filter import rank_correlation
from tunegate.tune.claims import reopen_older
from tunegate.tune.expected_time import PACES
from tunegate.tune.improvement import INFORMED
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.outcomes import warmed_models
from tunegate.tune.prior import (
    NEST_COLUMNS,
    Prior,
    Sketch,
    TaskExperience,
    VectorRegisters,
    experience_of,
    innermost,
    nest_columns,
    prior_of,
    ratios_of,
)
from tunegate.tune.prior_results import PriorResults, schedule_of
from tunegate.tune.samples import SampleFeatures, ScheduleSample
from tunegate_cache.format import records
from tunegate_cache.format.decisions import SamplingInstruction

# What decisions make of a loop nest, in words that are the same for every task.

ORDER = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (1, 2), (2, 1), (0, 3), (1, 3))
"""The loops of a product: rows, columns, and what is summed."""
AVX512, AVX2 = VectorRegisters(), VectorRegisters(8, 16)
SKETCH = Sketch("direct", LoopNest(ORDER, copied_at=1, unrolled_by=3, unrolls=(0, 16, 64, 512)))


def decided(lanes: int, rows: int = 4, unroll: int = 1) -> DecisionValues:
    return ((2, 1, 8, rows), (4, 1, 64 // lanes, lanes), (32, 8), (unroll,))


def experience() -> TaskExperience:
    """Wide innermost loops are fast."""
    rows = tuple(
        (0, 16.0 / lanes + 0.01 * rows, decided(lanes, rows))
        for lanes in (1, 2, 4, 8, 16)
        for rows in (1, 2, 3, 4, 5, 7)
    )
    return TaskExperience("product", (SKETCH,), rows)


def test_the_columns_are_the_sizes_of_the_loops() -> None:
    columns = nest_columns(SKETCH, decided(16))
    lanes, second, inner, middle, middle_last, outer, reduced_inner, reduced_outer, axis = columns[
        :9
    ]
    assert (lanes, second, inner) == (4, 2, 6)
    assert (middle, middle_last, outer) == (5, 2, 3)
    assert (reduced_inner, reduced_outer, axis) == (3, 5, 8)
    assert columns[9:11] == [1.0, 1.0]  # whole vectors of 256 bits, and of 512
    assert len(columns) == NEST_COLUMNS


def test_without_a_loop_nest_nothing_is_known() -> None:
    columns = nest_columns(Sketch("direct", None), ((3,),))
    assert len(columns) == NEST_COLUMNS
    assert all(math.isnan(column) for column in columns)


def test_what_the_innermost_loops_do_is_what_makes_samples_alike() -> None:
    assert innermost(SKETCH, decided(16)) == ((4, 16),)
    assert innermost(SKETCH, decided(16, unroll=3)) == innermost(SKETCH, decided(16))
    assert innermost(Sketch("direct", None), ((3,),)) == ((3,),)


def test_a_tile_takes_the_registers_that_hold_its_sums_and_fills_a_share_of_them() -> None:
    """56 numbers in a row take as many registers of 16 as 64 do."""

    def registers(lanes: int, rows: int, has: VectorRegisters) -> tuple[float, float]:
        decisions = ((2, 1, 8, rows), (4, 1, 1, lanes), (32, 8), (1,))
        sketch = msgspec.structs.replace(SKETCH, registers=has)
        power, filled, _ = nest_columns(sketch, decisions)[-3:]
        return round(2**power, 9), filled

    assert registers(64, 4, AVX512) == (16 / 32, 1.0)
    assert registers(56, 4, AVX512) == (16 / 32, 56 / 64)
    assert registers(14, 8, AVX512) == (8 / 32, 14 / 16)
    assert registers(1, 1, AVX512) == (1 / 32, 1 / 16)
    assert registers(64, 4, AVX2) == (32 / 16, 1.0)
    assert registers(14, 8, AVX2) == (16 / 16, 14 / 16)


def test_the_same_tile_is_another_one_in_other_registers() -> None:
    one, other = (
        nest_columns(msgspec.structs.replace(SKETCH, registers=has), decided(8))
        for has in (AVX512, AVX2)
    )
    assert one[-1] == 4
    assert other[-1] == 3
    assert one[:9] == other[:9]


def test_a_line_says_of_which_layer_it_is_and_where_it_was_measured() -> None:
    line = msgspec.structs.replace(
        experience(),
        kind="product",
        layer="0123456789abcdef",
        workload="w",
        models=("a.onnx", "b.onnx"),
        device="some cpu",
        threads=1,
    )
    assert msgspec.json.decode(msgspec.json.encode(line), type=TaskExperience) == line


def test_a_line_of_older_data_says_no_layer_and_no_device() -> None:
    line = msgspec.json.decode(b'{"name":"n","sketches":[],"rows":[]}', type=TaskExperience)
    assert (line.kind, line.layer, line.models, line.device, line.threads) == ("", "", (), "", 0)


FEW = 8


def test_it_expects_of_others_what_it_has_seen() -> None:
    prior = Prior([experience()])
    wide, narrow = prior.ratios([nest_columns(SKETCH, decided(lanes, rows=6)) for lanes in (16, 1)])
    assert wide > narrow + 0.3


def test_what_follows_the_columns_of_the_nest_is_not_looked_at() -> None:
    prior = Prior([experience()])
    row = nest_columns(SKETCH, decided(8))
    assert prior.ratios([row]) == prior.ratios([[*row, 5.0, math.nan]])


def test_it_knows_what_lies_near_what_it_was_fitted_to() -> None:
    prior = Prior([experience()])
    near = nest_columns(SKETCH, decided(16, rows=6))
    far = [each + 16.0 for each in near]
    assert prior.knows([near, far, [math.nan] * NEST_COLUMNS]).tolist() == [True, False, False]


def gpu_decided(threads: int, virtual: int) -> DecisionValues:
    tile = (16, virtual, threads, 1, 2)
    return tile, (16, 1, 16, 1, 4), *GPU_TILES[2:]


def gpu_experience() -> TaskExperience:
    """Many threads are fast, many virtual threads are slow."""
    rows = tuple(
        (0, virtual / threads + 0.01 * swap, gpu_decided(threads, virtual))
        for threads, virtual in ((1, 16), (2, 8), (4, 4), (8, 2), (16, 1))
        for swap in range(6)
    )
    sketch = Sketch("direct", GPU_NEST, kernel=KERNEL)
    return TaskExperience("product", (sketch,), rows, layer="f" * 64, device="gpu")


@pytest.mark.parametrize("has_kernel", [True, False])
def test_a_gpus_threads_are_told_from_its_virtual_threads(has_kernel: bool) -> None:
    """The loop nest has both in one number. Of what is no sum there is no analysis."""
    bound = msgspec.structs.replace(GPU_NEST, most_threads=1024)
    no_sum = msgspec.structs.replace(gpu_experience(), sketches=(Sketch("direct", bound),))
    (sketch,) = (gpu_experience() if has_kernel else no_sum).sketches
    sampling = [SamplingInstruction(index=n, kind="categorical") for n in range(len(GPU_TILES))]
    features = SampleFeatures({"a": sampling}, {"a": sketch})
    many, few = (
        features.of(ScheduleSample("a", tuple(enumerate(gpu_decided(threads, 16 // threads)))))
        for threads in (16, 1)
    )
    assert many[:NEST_COLUMNS] == few[:NEST_COLUMNS]
    fast, slow = Prior([gpu_experience(), no_sum]).ratios([many, few])
    assert fast > slow + 0.3


def test_the_scheduler_knows_for_which_targets_there_is_one() -> None:
    assert {kind for kind, pace in PACES.items() if pace == INFORMED} == {
        kind for kind in PACES if prior_of(kind) is not None
    }


def test_nothing_is_known_of_gpus() -> None:
    assert prior_of("cuda") is None


def test_every_operator_that_is_shipped_is_whole() -> None:
    for task in experience_of("llvm"):
        assert len(task.rows) >= FEW
        for number, milliseconds, values in task.rows:
            assert milliseconds > 0
            assert len(nest_columns(task.sketches[number], values)) == NEST_COLUMNS


def test_of_operators_that_it_was_not_fitted_to_it_knows_which_samples_are_good() -> None:
    """Whole operators are left out, a quarter of them at a time; never
    rows of one that is fitted to. Two of the four quarters are looked at."""
    tasks = experience_of("llvm")
    correlations, regrets = held_out(tasks, tasks, folds=2)
    assert statistics.mean(correlations) > 0.5
    assert statistics.median(regrets) < 1.1


def test_times_that_mean_nothing_teach_it_nothing() -> None:
    tasks = experience_of("llvm")
    correlations, _ = held_out([shuffled(task) for task in tasks], tasks, folds=1)
    assert abs(statistics.mean(correlations)) < 0.2


def held_out(
    taught: Sequence[TaskExperience], tasks: Sequence[TaskExperience], *, folds: int
) -> tuple[list[float], list[float]]:
    """Rank correlations, and how much slower than the best of all the best of its first few is."""
    correlations, regrets = [], []
    for fold in range(folds):
        prior = Prior([task for number, task in enumerate(taught) if number % 4 != fold])
        for task in tasks[fold::4]:
            expected = prior.ratios([nest_columns(task.sketches[n], v) for n, _, v in task.rows])
            ratios = ratios_of(task)
            correlations.append(rank_correlation(expected.tolist(), ratios))
            first = sorted(range(len(ratios)), key=lambda row: -expected[row])[:FEW]
            regrets.append(1.0 / max(ratios[row] for row in first))
    return correlations, regrets


def shuffled(task: TaskExperience) -> TaskExperience:
    """The same times, of other candidates."""
    times = random.Random(1).sample([ms for _, ms, _ in task.rows], len(task.rows))
    pairs = zip(task.rows, times, strict=True)
    return msgspec.structs.replace(task, rows=tuple((n, ms, v) for (n, _, v), ms in pairs))


TRUSTED = make_record()
CLAIM = msgspec.structs.replace(make_record(milliseconds=0.5), decisions=((3, (8,)),))
CLAIMS = Claims((CLAIM,), is_searched=True)


def priors(
    lookup: records.Lookup,
    claims: Claims | None = CLAIMS,
    sides: Sequence[Side] = ("head",),
    *,
    skipped: Skipped = "",
    trials: int = 0,
    device: records.DeviceFingerprint = DEVICE,
    toolchain: records.Toolchain = TRUSTED.toolchain,
) -> PriorResults:
    resolved = ResolvedTask(make_task(sides=sides), lookup, claims, skipped)
    planned = PlannedTask(resolved=resolved, trials=trials, gain_ms=0.0)
    return PriorResults(planned, device, toolchain)


def test_a_trusted_answer_is_served_unless_there_is_a_claim_to_measure() -> None:
    assert priors(exact(), None).is_served
    assert not priors(exact()).is_served
    assert priors(exact()).is_measured_only
    assert not priors(records.Miss("absent"), None).is_measured_only


def test_a_claim_is_measured_beside_the_best_that_is_trusted() -> None:
    second = msgspec.structs.replace(TRUSTED, decisions=((3, (9,)),))
    before = priors(records.ExactHit((TRUSTED, second)))
    assert before.seeds() == (("exact", schedule_of(TRUSTED)), ("own-zone", schedule_of(CLAIM)))
    assert before.incumbent == schedule_of(TRUSTED)


def test_without_a_claim_there_is_nothing_to_beat() -> None:
    assert priors(exact(), None).incumbent is None
    assert priors(records.Miss("absent")).incumbent is None


def test_what_an_earlier_push_searched_to_its_end_needs_no_neighbours() -> None:
    assert priors(transfer()).seeds() == (("own-zone", schedule_of(CLAIM)),)
    assert priors(transfer()).is_measured_only


def test_where_a_search_goes_on_neighbours_are_tried_as_well() -> None:
    before = priors(transfer(), sides=("base",))
    assert [origin for origin, _ in before.seeds()] == ["transfer", "own-zone"]
    assert not before.is_measured_only


def test_neighbours_of_the_own_zone_are_transferred_from() -> None:
    near = transfer()
    assert priors(records.Miss("absent"), Claims(near.records, is_searched=False)).seeds() == (
        ("transfer", schedule_of(near.records[0])),
    )


def test_what_is_not_run_is_what_trusted_zones_answer() -> None:
    assert priors(exact()).outcome().records == (TRUSTED,)
    assert priors(exact()).outcome().source == "exact"
    assert priors(records.Miss("absent")).outcome().records == ()


@pytest.mark.parametrize("lookup", [exact(), transfer(), records.Miss("absent")])
def test_nothing_is_run_for_what_both_sides_have(lookup: records.Lookup) -> None:
    elsewhere = msgspec.structs.replace(DEVICE, name="another")
    for device in (DEVICE, elsewhere):
        before = priors(lookup, None, ("base", "head"), skipped="shared", device=device)
        assert before.is_served
        assert before.outcome().trials == 0
        assert before.outcome().stopped == ("exact" if lookup == exact() else "shared")


# Records of an older toolchain: candidates, never answers.

OLDER = msgspec.structs.replace(
    TRUSTED,
    toolchain=msgspec.structs.replace(TRUSTED.toolchain, tvm="0.26.0"),
    run_nanoseconds=(1,) * 5,
)
DEFAULT_NOW = msgspec.structs.replace(TRUSTED, template="", decisions=())
LOST_NOW = msgspec.structs.replace(TRUSTED, run_nanoseconds=(9_000_000,) * 5)


def other(number: int, record: records.TuningRecord = OLDER) -> records.TuningRecord:
    return msgspec.structs.replace(record, decisions=((3, (number,)),))


def of_another_device(record: records.TuningRecord) -> records.TuningRecord:
    return msgspec.structs.replace(record, device=msgspec.structs.replace(DEVICE, name="another"))


def test_a_record_of_an_older_toolchain_is_asked_and_no_answer_however_fast() -> None:
    before = priors(records.ExactHit((OLDER, other(9))), None)
    assert before.is_outdated
    assert not before.is_served
    assert before.seeds() == (("exact", schedule_of(OLDER)),)
    beside = priors(records.ExactHit((other(9, of_another_device(TRUSTED)), OLDER)), None)
    assert beside.is_outdated
    assert beside.seeds() == before.seeds()
    found = before.outcome()
    assert (found.source, found.best_ms, found.older) == ("older", None, "not-asked")


@pytest.mark.parametrize("part", ["tvm", "ffi", "cuda", "schedules", "driver"])
def test_each_part_of_a_toolchain_counts(part: str) -> None:
    if part == "driver":
        device = msgspec.structs.replace(TRUSTED.device, driver="555.1")
        record = msgspec.structs.replace(TRUSTED, device=device)
    else:
        toolchain = msgspec.structs.replace(TRUSTED.toolchain, **{part: "another"})
        record = msgspec.structs.replace(TRUSTED, toolchain=toolchain)
    assert priors(records.ExactHit((record,)), None).is_outdated


def test_an_older_record_of_a_shared_task_waits_for_warm_as_a_candidate() -> None:
    before = priors(records.ExactHit((OLDER,)), None, ("base", "head"), skipped="shared")
    assert before.is_served
    assert not before.is_outdated
    found = before.outcome()
    assert (found.source, found.stopped, found.older) == ("older", "shared", "not-asked")


@pytest.mark.parametrize(
    ("record", "is_known"), [(OLDER, False), (TRUSTED, True), (of_another_device(OLDER), True)]
)
def test_doctor_knows_what_this_toolchain_has_tuned_on_this_device(
    record: records.TuningRecord, is_known: bool
) -> None:
    resolved = ResolvedTask(make_task(), records.ExactHit((record,)))
    origin = RecordOrigin(device=DEVICE, toolchain=TRUSTED.toolchain, source=TRUSTED.source)
    (found,) = warmed_models([reopen_older(resolved, origin)], ())
    assert (found.tasks, found.known) == (1, int(is_known))


def test_what_won_is_the_answer_of_this_toolchain_and_older_ones_rank_behind_it() -> None:
    before = priors(records.ExactHit((other(9), TRUSTED)), None)
    assert before.is_served
    assert before.outcome().records[0] == TRUSTED


def test_what_lost_is_not_asked_again_and_the_older_toolchain_still_has_it() -> None:
    lookup = records.ExactHit((DEFAULT_NOW, LOST_NOW, other(9)))
    assert not ResolvedTask(make_task(), lookup).is_settled  # a search is due
    seeds = priors(lookup, None, trials=8).seeds()
    assert [schedule for _, schedule in seeds] == [schedule_of(other(9))]
    left = priors(lookup, None)
    assert left.is_served
    assert left.outcome().records[0] == DEFAULT_NOW
    assert priors(records.ExactHit((OLDER,)), None).is_outdated
    assert priors(records.ExactHit((OLDER,)), None, toolchain=OLDER.toolchain).is_served


def test_one_that_was_measured_and_not_confirmed_is_asked_again() -> None:
    quick = msgspec.structs.replace(TRUSTED, run_nanoseconds=(1_000_000,) * 3)
    before = priors(records.ExactHit((quick, other(9))), None)
    assert before.is_outdated
    assert before.seeds() == (("exact", schedule_of(quick)),)


def test_a_task_that_only_has_its_default_schedule_is_asked_nothing() -> None:
    default = msgspec.structs.replace(OLDER, template="", decisions=())
    assert priors(records.ExactHit((default,)), None).is_served


def test_a_search_is_over_where_more_than_one_schedule_was_tried() -> None:
    lookup = records.ExactHit((DEFAULT_NOW, LOST_NOW, other(9, LOST_NOW)))
    assert ResolvedTask(make_task(), lookup).is_settled
    assert ResolvedTask(make_task(), records.ExactHit((DEFAULT_NOW,))).is_settled
    failed = msgspec.structs.replace(LOST_NOW, status="compile", run_nanoseconds=())
    assert not ResolvedTask(
        make_task(), records.ExactHit((DEFAULT_NOW, other(9)), (failed,))
    ).is_settled
