import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import report_parts as parts
from tests.support.plans import CPU, config_of, plan_of
from tests.support.tuning_tasks import make_record, make_task
from tunegate.artifacts.candidates import CandidateBuild, RememberedElection
from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.plans import ExpectedStep, TuningPlan
from tunegate.artifacts.tasks import RecordOrigin
from tunegate.config import AccuracyConfig, BudgetConfig, ModelConfig
from tunegate.plan.run_forecast import OPENING_SECONDS, run_forecast, warm_forecast
from tunegate_cache.format.records import ExactHit, Lookup, Miss

MODEL = "m.onnx"
TVM = CandidateBuild(runtime="tvm", title="TVM", is_tuned=True)
ORT = CandidateBuild(runtime="onnxruntime", title="ONNX Runtime")
ORT_FUSED = CandidateBuild(runtime="onnxruntime", title="ONNX Runtime (x)", variant="x")
CANDIDATES = {"cpu": (TVM, ORT, ORT_FUSED)}
RECORD = make_record("a")
ORIGIN = RecordOrigin(device=RECORD.device, toolchain=RECORD.toolchain, source=RECORD.source)


def planned(*models: ModelChange, minutes: float = 2, **fields: object) -> TuningPlan:
    found = plan_of([make_task("a"), make_task("b")], budget=BudgetConfig(minutes=minutes))
    return msgspec.structs.replace(found, changes=parts.changes(*models), **fields)


def kinds(plan: TuningPlan) -> list[str]:
    return [step.kind for step in run_forecast(plan, config_of(None, CPU), CANDIDATES, ORIGIN)]


def test_a_changed_model_is_tuned_built_chosen_for_and_measured() -> None:
    steps = run_forecast(planned(parts.change(MODEL)), config_of(None, CPU), CANDIDATES, ORIGIN)
    assert [step.text for step in steps] == [
        "tune 2 tasks in at most 120 s (0.033 USD)",
        "build 1 model",
        "choose what ships",
        "measure 1 model",
    ]


def test_without_trials_nothing_is_tuned() -> None:
    assert kinds(planned(parts.change(MODEL), minutes=0)) == ["build", "choose", "measure"]


ELECTION = RememberedElection(
    model=MODEL, target="cpu", winner="tvm", milliseconds={}, elected_at=0, device="", units=1
)


def test_a_remembered_election_is_not_held_again() -> None:
    plan = planned(parts.change(MODEL), elections=(ELECTION,))
    assert kinds(plan) == ["tune", "build", "measure"]
    whole, winner = (step_of(each, "build") for each in (planned(parts.change(MODEL)), plan))
    assert len(whole.parts) == 2
    assert winner.parts == whole.parts[:1]


def test_one_that_was_cut_short_is_held_again() -> None:
    known = msgspec.structs.replace(ELECTION, is_cut_short=True)
    assert "choose" in kinds(planned(parts.change(MODEL), elections=(known,)))


def step_of(plan: TuningPlan, kind: str) -> ExpectedStep:
    steps = run_forecast(plan, config_of(None, CPU), CANDIDATES, ORIGIN)
    return next(step for step in steps if step.kind == kind)


def test_builds_are_counted_by_model_side_and_candidate() -> None:
    compiled, opened = step_of(planned(parts.change(MODEL)), "build").parts
    two = (parts.change(MODEL), parts.change("other.onnx"))
    refused = step_of(planned(*two), "build").parts
    assert refused[0] == compiled  # the compiler takes nothing of the other model
    task = make_task("c")
    use = msgspec.structs.replace(task.uses[0], model="other.onnx")
    plan = plan_of([make_task("a"), make_task("b"), msgspec.structs.replace(task, uses=(use,))])
    twice = step_of(msgspec.structs.replace(plan, changes=parts.changes(*two)), "build").parts
    assert opened == 2 * 2 * OPENING_SECONDS  # two candidates of both sides
    assert twice[1] == 2 * opened
    assert twice[0] > compiled


def test_other_numbers_take_a_part_of_the_time_where_float32_is_built_first() -> None:
    bf16 = msgspec.structs.replace(TVM, variant="bf16", settings={"precision": "bfloat16"})
    config = config_of(None, CPU)
    budget = AccuracyConfig(max_error=1.0)
    config = msgspec.structs.replace(config, models=(ModelConfig(path="*.onnx", accuracy=budget),))
    steps = run_forecast(planned(parts.change(MODEL)), config, {"cpu": (TVM, bf16)}, ORIGIN)
    first, later = next(step for step in steps if step.kind == "build").parts
    assert later < first / 2


def test_each_challenger_is_launched() -> None:
    few, many = (
        next(step for step in steps if step.kind == "choose")
        for steps in (
            run_forecast(planned(parts.change(MODEL)), config_of(None, CPU), each, ORIGIN)
            for each in ({"cpu": (TVM, ORT)}, CANDIDATES)
        )
    )
    assert many.seconds == 2 * few.seconds


@given(st.integers(1, 5), st.floats(0, 100))
def test_every_step_takes_a_time_that_can_be_waited_for(models: int, minutes: float) -> None:
    changes = [parts.change(f"{number}.onnx") for number in range(models)]
    steps = run_forecast(
        planned(*changes, minutes=minutes), config_of(None, CPU), CANDIDATES, ORIGIN
    )
    assert all(0 <= step.seconds < 1e5 for step in steps)


def test_warm_builds_what_it_tunes_and_what_is_not_elected() -> None:
    new = parts.change(MODEL, kind="added", base=None)
    config, known = config_of(None, CPU), {(MODEL, "cpu")}

    def warmed(elected: set[tuple[str, str]], minutes: float) -> list[str]:
        plan = planned(new, minutes=minutes)
        return [step.kind for step in warm_forecast(plan, config, CANDIDATES, ORIGIN, elected)]

    assert warmed(set(), 2) == ["tune", "build", "choose"]
    assert warmed(set(), 0) == ["build", "choose"]
    assert warmed(known, 0) == []


@pytest.mark.parametrize(
    ("known", "budget", "text"),
    [
        (2, BudgetConfig(), "measure 2 schedules of an older toolchain again in about "),
        (2, BudgetConfig(trials=1), "measure 1 schedule of an older toolchain again in about "),
        (2, BudgetConfig(minutes=0.05), "in at most 3 s"),
        (1, BudgetConfig(minutes=2), "an older toolchain again and tune 1 task in at most 120 s"),
        (1, BudgetConfig(minutes=0), ""),
    ],
)
def test_schedules_of_an_older_toolchain_are_measured_again(
    known: int, budget: BudgetConfig, text: str
) -> None:
    upgraded = msgspec.structs.replace(RECORD.toolchain, tvm="0.28.0")
    origin = msgspec.structs.replace(ORIGIN, toolchain=upgraded)
    tasks = [make_task("a"), make_task("b")]
    lookups: list[Lookup] = [ExactHit((make_record(each.key.workload),)) for each in tasks]
    plan = plan_of(tasks, [*lookups[:known], *[Miss("absent")] * (2 - known)], budget=budget)
    plan = msgspec.structs.replace(plan, changes=parts.changes(parts.change(MODEL)))
    steps = run_forecast(plan, config_of(None, CPU), CANDIDATES, origin)
    told = [step.text for step in steps if step.kind == "tune"]
    assert all(text in each for each in told)
    assert bool(told) is bool(text)
    before = run_forecast(plan, config_of(None, CPU), CANDIDATES, ORIGIN)
    assert not any("older" in step.text for step in before)
