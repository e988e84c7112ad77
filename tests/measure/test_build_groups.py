from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measure.test_choose_runtime import both, chosen, three
from tests.support.measured_cells import DEVICE, make_build, make_changes
from tests.support.plans import plan_of
from tests.support.tuning_records import make_key, make_record, make_shape
from tests.support.tuning_tasks import (
    make_outcome,
    make_plan,
    make_resolution,
    make_task,
    make_tuning,
)
from tunegate.artifacts.builds import Build, Cell, SampledErrors, WrongKernel, unbuilt
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.outcomes import Stopped, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import Claims, RecordOrigin, ResolvedTask, Skipped
from tunegate.config import (
    Accuracy,
    AccuracyConfig,
    Config,
    InputConfig,
    MetricCommandConfig,
    ModelConfig,
    TargetConfig,
    ValuesConfig,
)
from tunegate.errors import MeasurementError
from tunegate.measure import build_sides, error_budgets
from tunegate.measure.build_records import best_records, mark_wrong_records
from tunegate.ports import BuildJob, ModelJob
from tunegate_cache.format.record_codec import decode_records, encode_record
from tunegate_cache.format.records import ExactHit, Lookup, Miss, TransferHit, TuningRecord
from tunegate_cache.protocol.record_index import RecordIndex


def candidate(runtime: str, variant: str = "", *, is_tuned: bool = False) -> CandidateBuild:
    return CandidateBuild(runtime=runtime, title=runtime, variant=variant, is_tuned=is_tuned)


def test_a_compiler_builds_one_candidate_after_the_other_and_others_all_at_once() -> None:
    ours = (candidate("tvm", is_tuned=True), candidate("tvm", "bf16", is_tuned=True))
    theirs = (candidate("fast"), candidate("fast", "bf16"), candidate("other"))
    expected = [[ours[0]], [ours[1]], [theirs[0], theirs[1]], [theirs[2]]]
    assert build_sides.built_together({"cpu": (*ours, *theirs)}) == expected


WANTED = st.builds(
    build_sides.WantedBuild,
    candidate=st.sampled_from([candidate("tvm", is_tuned=True), candidate("fast")]),
    cell=st.sampled_from([Cell(model="a.onnx", target="cpu"), Cell(model="b.onnx", target="cpu")]),
    side=st.sampled_from(SIDES),
)


@given(st.lists(st.lists(WANTED, max_size=4), max_size=5))
def test_a_compiler_keeps_a_model_open_until_its_last_candidate_is_built(
    groups: list[list[build_sides.WantedBuild]],
) -> None:
    later = build_sides.compiled_later(groups)
    assert len(later) == len(groups)
    for at, places in enumerate(later):
        rest = [each for group in groups[at + 1 :] for each in group]
        assert places == {each.place for each in rest if each.candidate.is_tuned}


A, B = (Cell(model=name, target="cpu") for name in ("a.onnx", "b.onnx"))


def test_a_side_with_a_task_is_one_that_the_compiler_takes() -> None:
    plan = plan_of([make_task("a")])
    (use,) = plan.resolution.tasks[0].task.uses
    assert build_sides.compiled_sides(plan) == {(Cell(model=use.model, target="cpu"), use.side)}


SLOW = make_record(run_nanoseconds=(9_000,))
ORIGIN = RecordOrigin(device=SLOW.device, toolchain=SLOW.toolchain, source=SLOW.source)
FAST = make_record(run_nanoseconds=(1_000,), decisions=((3, (8, 8)), (5, (0,))))


def plan_with(lookup: Lookup, claims: Claims | None = None, *, skipped: Skipped = "") -> TuningPlan:
    task = msgspec.structs.replace(make_task("conv"), key=make_key(), shape=make_shape())
    resolved = ResolvedTask(task, lookup, claims, skipped)
    resolution = msgspec.structs.replace(make_resolution([]), tasks=(resolved,))
    return make_plan(resolution, changes=make_changes())


def outcome_with(*records: TuningRecord, stopped: Stopped = "finished") -> TuningOutcome:
    task = make_outcome("conv", key=make_key(), records=records, best_ms=None, stopped=stopped)
    return make_tuning(task, device=DEVICE)


SOURCE = make_record("another")
FAILURE = make_record(status="wrong", run_nanoseconds=())
EXACT, NEAR = ExactHit((SLOW,)), TransferHit((SOURCE.key,), 1.0, (SOURCE,))
NONE, FAILED = Miss("absent"), Miss("absent", (FAILURE,))
CLAIMS = Claims((FAST,), is_searched=True)
UNTRIED = [outcome_with(stopped="not-started")]
Known = tuple[TuningPlan, list[TuningOutcome], tuple[TuningRecord, ...], str]
KNOWN: dict[str, Known] = {
    "measured now": (plan_with(EXACT), [outcome_with(FAST)], (FAST, SLOW), "search"),
    "measured beside a neighbour": (plan_with(NEAR), [outcome_with(SLOW)], (SLOW,), "search"),
    "what won of a claim": (plan_with(NONE, CLAIMS), [outcome_with(SLOW)], (SLOW,), "search"),
    "a neighbour": (plan_with(NEAR), [], (SOURCE,), "transfer"),
    "trusted, and claimed": (plan_with(EXACT, CLAIMS), [], (SLOW,), "exact"),
    "a neighbour, and claimed": (plan_with(NEAR, CLAIMS), [], (SOURCE,), "transfer"),
    "claimed alone": (plan_with(NONE, CLAIMS), [], (FAST,), "claimed"),
    "claimed and untried": (plan_with(NONE, CLAIMS), UNTRIED, (FAST,), "claimed"),
    "claimed, and failed": (plan_with(NONE, CLAIMS), [outcome_with(stopped="failed")], (), ""),
    "foreign": (plan_with(NONE), [outcome_with(make_record("other"))], (), ""),
    "picked": (plan_with(FAILED), [], (FAILURE,), "prior"),
    "picked, untried": (plan_with(FAILED), UNTRIED, (FAILURE,), "prior"),
    "shared": (plan_with(FAILED), [outcome_with(stopped="shared")], (FAILURE,), "prior"),
    "behind": (plan_with(FAILED), [outcome_with(stopped="behind")], (FAILURE,), "prior"),
    "all failed": (plan_with(NONE), [outcome_with(stopped="failed")], (), ""),
}


@pytest.mark.parametrize("known", KNOWN.values(), ids=list(KNOWN))
def test_schedules_are_the_best_that_is_known_and_trusted(known: Known) -> None:
    plan, outcomes, best, source = known
    found, sources = best_records(plan, outcomes, ORIGIN)
    assert found == ({make_key(): best} if best else {})
    assert sources == ({make_key(): source} if source else {})


def test_a_record_of_an_older_toolchain_is_marked_where_no_tuning_ran() -> None:
    today = msgspec.structs.replace(ORIGIN.toolchain, tvm="9")
    origin = msgspec.structs.replace(ORIGIN, toolchain=today)
    best, sources = best_records(plan_with(ExactHit((FAST, SLOW))), [], origin)
    assert best == {make_key(): (FAST, SLOW)}
    assert sources == {make_key(): "older"}


@pytest.mark.parametrize("lookup", [FAILED, NEAR], ids=["miss", "transfer"])
def test_nothing_is_picked_for_models_far_behind_what_ships(lookup: Lookup) -> None:
    planned = plan_with(lookup, skipped="behind")
    for outcomes in ([], [outcome_with(stopped="behind")]):
        assert best_records(planned, outcomes, ORIGIN) == ({}, {})


CELL = Cell(model="m.onnx", target="cpu")
PLAIN = CandidateBuild(runtime="any", title="Any")
INT8 = CandidateBuild(
    runtime="any", title="Any (int8)", variant="int8", settings={"precision": "int8"}
)
BUDGET = AccuracyConfig(max_error=1.0)


def config(accuracy: Accuracy, **inputs: InputConfig) -> Config:
    return Config(models=(ModelConfig(path="*.onnx", accuracy=accuracy, inputs=inputs),))


def held(error: float | None) -> Build:
    sampled = None if error is None else SampledErrors(relative=(error,) * 74)
    build = msgspec.structs.replace(unbuilt(""), error=None, directory="b", sampled=sampled)
    return error_budgets.held_to_budget(build, config(BUDGET), "m.onnx", INT8)


def test_other_numbers_are_tried_only_under_a_budget() -> None:
    both = {"cpu": (PLAIN, INT8)}
    tried = [error_budgets.is_tried(config("same"), CELL, each, both) for each in (PLAIN, INT8)]
    assert tried == [True, False]
    assert error_budgets.is_tried(config(BUDGET), CELL, INT8, both)
    assert [
        error_budgets.samples_for(config(BUDGET), "m.onnx", each) for each in (PLAIN, INT8)
    ] == [0, 74]


def test_what_is_calibrated_is_tried_where_a_budget_and_values_are_given() -> None:
    static = msgspec.structs.replace(INT8, settings={**INT8.settings, "quantization": "static"})
    both = {"cpu": (PLAIN, static)}
    values = InputConfig(values=ValuesConfig(low=0, high=1))
    assert error_budgets.is_tried(config(BUDGET, x=values), CELL, static, both)
    assert not error_budgets.is_tried(config("same", x=values), CELL, static, both)
    assert not error_budgets.is_tried(
        config(BUDGET, x=InputConfig(shape=(1, 2))), CELL, static, both
    )
    assert not error_budgets.is_tried(config("same"), CELL, static, {"cpu": (static,)})
    assert error_budgets.lacks_values(config(BUDGET), "m.onnx", static) == (
        "m.onnx: Any (int8) is calibrated on values that you give, and there are none: "
        "write them under inputs: in tunegate.yaml."
    )
    assert error_budgets.lacks_values(config(BUDGET), "m.onnx", INT8) == ""
    assert error_budgets.lacks_values(config("same"), "m.onnx", static) == ""
    assert error_budgets.lacks_values(config(BUDGET, x=values), "m.onnx", static) == ""


def test_a_target_without_float32_is_checked_and_not_left_out() -> None:
    assert error_budgets.is_tried(config("same"), CELL, INT8, {"cpu": (INT8,)})
    assert error_budgets.samples_for(config("same"), "m.onnx", INT8) == 0


def test_a_build_inside_its_budget_has_its_estimate_and_no_samples() -> None:
    build = held(0.009)
    assert (build.error, build.sampled) == (None, None)
    assert [each.high for each in build.error_estimate] == pytest.approx([0.9])
    assert [each.limit for each in build.error_estimate] == [1.0]


def test_float32_of_a_model_with_a_budget_has_its_limits_so_that_the_report_can_say_them() -> None:
    build = msgspec.structs.replace(unbuilt(""), error=None, directory="b")
    whole = AccuracyConfig(
        max_error=1.0, min_agreement=98.0, metric_command=MetricCommandConfig(run="a", at_most=0.5)
    )
    limits = error_budgets.held_to_budget(build, config(whole), "m.onnx", PLAIN).limits
    expected = [("max-error", 1.0), ("min-agreement", 98.0), ("metric", 0.5)]
    assert [(each.what, each.limit) for each in limits] == expected
    assert error_budgets.held_to_budget(build, config("same"), "m.onnx", PLAIN).limits == ()


def test_a_build_outside_its_budget_is_refused_with_its_interval() -> None:
    assert held(0.02).error == (
        "m.onnx: Any (int8) has a max-error of 2%, interval 2% to 2% on 74 inputs; "
        "the budget is 1%."
    )


def test_a_build_that_says_nothing_of_its_error_does_not_ship() -> None:
    assert held(None).error == "m.onnx: Any (int8) says nothing of its error."


METRIC = AccuracyConfig(metric_command=MetricCommandConfig(run="wer", at_most=0.5))


class Scores:
    """A command that says the same of each of 74 cases, or nothing."""

    def __init__(self, score: float | None) -> None:
        self._score = score

    def scores(self, command: str, cases: Path) -> tuple[float, ...]:
        if self._score is None:
            raise MeasurementError(f"`{command}` exited with 1: {cases.name}")
        return (self._score,) * 74


def build_with(score: float | None) -> Build:
    model = ModelJob(file=Path("m.onnx"), path="m.onnx", shapes={}, target=TargetConfig(name="cpu"))
    job = BuildJob(model=model, records={}, sources={}, directory=Path("b"), cases=Path("c"))
    sampled = SampledErrors(relative=(0.3,) * 74, telling=tuple(range(74)), inputs=74)
    plain = msgspec.structs.replace(unbuilt(""), error=None, directory="b", sampled=sampled)
    found = error_budgets.with_scores(plain, job, config(METRIC), INT8, Scores(score))
    return error_budgets.held_to_budget(found, config(METRIC), "m.onnx", INT8)


def test_a_command_scores_only_other_numbers_of_a_model_that_has_one() -> None:
    asked = [
        error_budgets.is_scored(config(each), "m.onnx", INT8) for each in (METRIC, BUDGET, "same")
    ]
    assert asked == [True, False, False]
    assert not error_budgets.is_scored(config(METRIC), "m.onnx", PLAIN)


def test_a_build_ships_where_its_scores_are_inside_the_bound_whatever_its_error_is() -> None:
    inside = build_with(0.5)
    assert inside.error is None
    expected = [("max-error", 30.0), ("metric", 0.5)]
    assert [(each.what, each.high) for each in inside.error_estimate] == expected
    assert build_with(0.6).error == (
        "m.onnx: Any (int8) has a metric of 0.6, interval 0.6 to 0.6 on 74 inputs; "
        "the budget is 0.5."
    )


def test_a_build_whose_command_says_nothing_does_not_ship() -> None:
    failed = build_with(None)
    assert failed.error == "m.onnx: Any (int8) has no metric: `wer` exited with 1: c."
    assert failed.error_estimate == ()


def test_what_a_budget_refuses_is_told_with_its_error_where_another_ships(tmp_path: Path) -> None:
    build = msgspec.structs.replace(three("head")[2], sampled=SampledErrors(relative=(0.2,) * 100))
    refused = error_budgets.held_to_budget(build, config(BUDGET), CELL.model, INT8)
    cell, _, _ = chosen(tmp_path, [-0.4], head=(*both("head"), refused))
    assert cell.head is not None
    assert cell.head.choice is not None
    assert [each.error for each in cell.head.choice.refused] == [*refused.error_estimate]


# A schedule that computes other numbers is marked, and no build is made with it again.

BEST = make_record(run_nanoseconds=(1_000,), device=DEVICE, measured_at=5)
NEXT = make_record(
    run_nanoseconds=(2_000,), decisions=((3, (8, 8)), (5, (0,))), device=DEVICE, measured_at=5
)


def wrong_kernel_of(record: TuningRecord) -> WrongKernel:
    return WrongKernel(
        key=record.key,
        shape=record.shape,
        toolchain=record.toolchain,
        name="conv",
        template=record.template,
        decisions=record.decisions,
        max_absolute=0.1,
        max_relative=0.2,
    )


def build_without(*records: TuningRecord) -> Build:
    wrong = tuple(wrong_kernel_of(record) for record in records)
    return msgspec.structs.replace(make_build("b"), wrong_kernels=wrong)


def marked(*wrong: TuningRecord) -> RecordIndex:
    index = RecordIndex(DEVICE)
    index.add([BEST, NEXT])
    index.add(mark_wrong_records([build_without(*wrong)], DEVICE, measured_at=6))
    return index


def test_a_marked_schedule_is_no_answer_any_more_and_the_next_one_is() -> None:
    found = marked(BEST).exact(BEST.key)
    assert isinstance(found, ExactHit)
    assert found.records == (NEXT,)
    assert [(r.status, r.decisions) for r in found.failures] == [("wrong", BEST.decisions)]


def test_a_mark_is_a_record_that_the_cache_takes() -> None:
    (mark,) = mark_wrong_records([build_without(BEST)], DEVICE, measured_at=6)
    assert decode_records(encode_record(mark)) == mark


def test_a_later_measurement_that_computes_right_takes_a_mark_back() -> None:
    index = marked(BEST)
    index.add([msgspec.structs.replace(BEST, measured_at=7)])
    found = index.exact(BEST.key)
    assert isinstance(found, ExactHit)
    assert found.records[0].decisions == BEST.decisions
