"""The plan: every task in one shard, all shards within the budget."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.plans import CPU, GPU, MISS, config_of, plan_of
from tests.support.tuning_tasks import (
    exact,
    make_record,
    make_resolution,
    make_task,
    make_task_set,
    transfer,
)
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ModelChange, Side
from tunegate.artifacts.plans import MeasuringShard, TuningPlan
from tunegate.artifacts.tasks import Claims, Resolution, ResolvedTask, TaskSet, TuningTask
from tunegate.config import BudgetConfig, GateConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.plan.allocation import balance_loads
from tunegate.plan.plan import plan
from tunegate.plan.run_forecast import answer_seconds, build_seconds
from tunegate.plan.shards import (
    compared_elsewhere,
    matrix,
    measure_matrix,
    of_shard,
    plan_measuring,
)
from tunegate_cache.format.records import Lookup

kinds = st.tuples(
    st.sampled_from(["cpu", "gpu"]),
    st.sampled_from(["conv2d_add", "softmax", "add", "transpose"]),
    st.floats(0, 1e11),
    st.integers(1, 20),
    st.sampled_from([MISS, MISS, transfer(), exact()]),
)
cases = st.lists(kinds, max_size=25)
budgets = st.builds(
    BudgetConfig,
    minutes=st.none() | st.floats(0, 60),
    usd=st.none() | st.floats(0, 5),
    trials=st.none() | st.integers(0, 2000),
)
shard_counts = st.none() | st.integers(1, 300)
CLAIMS = Claims((make_record(milliseconds=0.5),), is_searched=True)
UNFINISHED_CLAIMS = Claims(CLAIMS.records, is_searched=False)


def planned_case(
    case: list[tuple[str, str, float, int, Lookup]], budget: BudgetConfig, shards: int | None
) -> tuple[TuningPlan, list[TuningTask]]:
    tasks = [
        make_task(f"task{i}", target=target, operator=operator, flops=flops, weight=weight)
        for i, (target, operator, flops, weight, _) in enumerate(case)
    ]
    lookups, claims = [row[4] for row in case], UNFINISHED_CLAIMS
    return plan_of(tasks, lookups, budget=budget, shards=shards, claims=claims), tasks


@given(cases, budgets, shard_counts)
def test_every_task_is_in_exactly_one_shard_of_its_target(
    case: list[tuple[str, str, float, int, Lookup]], budget: BudgetConfig, shards: int | None
) -> None:
    made, tasks = planned_case(case, budget, shards)
    placed = [(t.resolved.task, shard.target) for shard in made.shards for t in shard.tasks]
    assert sorted(task.key for task, _ in placed) == sorted(task.key for task in tasks)
    assert all(task.target == target for task, target in placed)


@given(cases, budgets, shard_counts)
def test_the_shards_together_stay_within_the_budget(
    case: list[tuple[str, str, float, int, Lookup]], budget: BudgetConfig, shards: int | None
) -> None:
    made, _ = planned_case(case, budget, shards)
    planned = sum(task.trials for shard in made.shards for task in shard.tasks)
    caps = [shard.budget for shard in made.shards]
    assert planned <= most(budget.trials)
    assert sum(cap.trials or 0 for cap in caps) <= most(budget.trials)
    paid = sum((cap.seconds or 0) * (cap.usd_per_hour or 0) / 3600 for cap in caps)
    assert paid <= most(budget.usd) * (1 + 1e-9)
    seconds = [cap.seconds or 0 for cap in caps]
    wall = sum(seconds) if shards is None else max(seconds, default=0)
    assert wall <= most(budget.minutes) * 60 * (1 + 1e-9)


def most(limit: float | None) -> float:
    return math.inf if limit is None else limit


@given(cases, budgets, shard_counts)
def test_no_matrix_is_too_long_and_exact_hits_cost_nothing(
    case: list[tuple[str, str, float, int, Lookup]], budget: BudgetConfig, shards: int | None
) -> None:
    made, _ = planned_case(case, budget, shards)
    assert len(made.shards) <= 256
    assert not any(
        task.trials
        for shard in made.shards
        for task in shard.tasks
        if task.resolved.lookup == exact()
    )


def test_the_estimate_never_exceeds_the_cap() -> None:
    made = plan_of([make_task()], budget=BudgetConfig(minutes=1, usd=0.01))
    assert made.estimate.seconds <= 36
    assert made.budget.seconds == pytest.approx(36)


def test_money_pays_for_known_schedules_that_are_measured_again() -> None:
    made = plan_of([make_task()], [exact()], budget=BudgetConfig(usd=0.05))
    assert [shard.budget.seconds for shard in made.shards] == [pytest.approx(180)]


def test_every_shard_knows_what_its_tasks_may_take_of_the_target() -> None:
    tasks = [make_task(f"t{i}", flops=1e8 * (1 + i)) for i in range(6)]
    budget = BudgetConfig(target_latency_ms=12.0, min_gain_percent_per_minute=2.0)
    shards = plan_of(tasks, [MISS] * 6, budget=budget, shards=3).shards
    assert len(shards) == 3
    parts = [part for shard in shards for part in shard.budget.target_ms.values()]
    assert sum(parts) == pytest.approx(12.0)
    assert {shard.budget.min_gain_percent_per_minute for shard in shards} == {2.0}


def test_what_only_the_base_has_is_planned_like_what_only_the_head_has() -> None:
    sides: tuple[Side, Side] = ("base", "head")
    made = plan_of([make_task(f"of {side}", flops=1e9, sides=(side,)) for side in sides])
    trials = {t.resolved.task.uses[0].name: t.trials for t in made.shards[0].tasks}
    assert abs(trials["of base"] - trials["of head"]) <= 1


BOTH: tuple[Side, Side] = ("base", "head")


def test_what_both_sides_have_from_the_cache_is_saved_too() -> None:
    tasks, budget = [make_task("a", sides=BOTH)], BudgetConfig(trials=64)
    served = plan_of(tasks, [exact("a")], budget=budget)
    assert served.estimate.seconds == 0
    assert served.saved is not None
    assert served.saved.seconds > 0
    assert served.saved_trials == 1
    assert plan_of(tasks, [MISS], budget=budget).saved is None


@pytest.mark.parametrize("lookup", [MISS, transfer()], ids=["miss", "transfer or unfinished"])
def test_what_both_sides_have_is_never_tuned_whatever_the_cache_has(lookup: Lookup) -> None:
    task = make_task(sides=BOTH)
    resolution = Resolution(
        tasks=(ResolvedTask(task, lookup, skipped="shared"),), cache=make_resolution([]).cache
    )
    made = plan(make_task_set([task]), resolution, config_of())
    assert [each.trials for each in made.shards[0].tasks] == [0]
    assert (made.estimate.seconds, matrix(made)) == (0, {"include": []})
    (note,) = made.notes
    assert note.startswith("1 shared task waits for tunegate warm: ")


def test_what_both_sides_have_takes_nothing_from_what_one_side_has() -> None:
    changed = [make_task("old", sides=("base",)), make_task("new", sides=("head",))]
    alone = plan_of(changed, budget=BudgetConfig(trials=64))
    tasks = [*changed, *(make_task(f"shared {n}", sides=BOTH) for n in range(5))]
    beside = plan(make_task_set(tasks), make_resolution([]), config_of(BudgetConfig(trials=64)))
    trials = [task.trials for task in beside.shards[0].tasks if task.trials]
    assert trials == [task.trials for task in alone.shards[0].tasks]
    assert "5 shared tasks wait" in beside.notes[0]


def test_what_both_sides_have_and_the_cache_knows_waits_for_nothing() -> None:
    assert plan_of([make_task(sides=BOTH)], [exact()], shards=1).notes == ()


def test_a_task_the_resolution_does_not_have_is_a_miss() -> None:
    task = make_task()
    nothing = Resolution(tasks=(), cache=make_resolution([]).cache)
    made = plan(make_task_set([task]), nothing, config_of())
    assert made.shards[0].tasks[0].resolved.lookup == MISS


def test_a_number_of_shards_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="--shards: 0 is not"):
        plan_of([make_task()], shards=0)


def test_more_targets_than_a_matrix_takes_are_refused() -> None:
    targets = [TargetConfig(name=f"t{i}") for i in range(257)]
    tasks = [make_task(target=target.name) for target in targets]
    with pytest.raises(ConfigError, match="targets: 257 have tasks"):
        plan(make_task_set(tasks), make_resolution(tasks), config_of(None, *targets))


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    made = plan_of([make_task("a"), make_task("b", target="gpu")], [exact("a"), transfer()])
    file = tmp_path / "plan.json"
    artifact_io.write(file, made)
    assert artifact_io.read(file, TuningPlan) == made


def plan_with_claims(lookup: Lookup, sides: tuple[Side, ...], budget: BudgetConfig) -> TuningPlan:
    return plan_of([make_task(sides=sides)], [lookup], budget=budget, claims=CLAIMS)


def test_claims_take_no_trial_from_what_the_base_uses() -> None:
    budget = BudgetConfig(trials=64)
    claimed = plan_with_claims(MISS, ("base",), budget)
    plain = plan_of([make_task(sides=("base",))], budget=budget)
    assert claimed.shards[0].tasks[0].trials == plain.shards[0].tasks[0].trials > 0
    assert claimed.estimate == plain.estimate


def test_claims_get_the_trials_they_need_and_at_most_half_of_those_of_a_search() -> None:
    tasks = [make_task("a"), make_task("b", target="gpu")]
    for trials, of_shards in ((8, [6, 2]), (3, [2, 1]), (1, [1, 0])):
        budget = BudgetConfig(trials=trials)
        made = plan_of(tasks, [MISS, exact("b")], budget=budget, claims=UNFINISHED_CLAIMS)
        assert [shard.budget.trials for shard in made.shards] == of_shards


def test_what_only_the_head_has_and_an_earlier_push_searched_is_not_searched_again() -> None:
    made = plan_with_claims(MISS, ("head",), BudgetConfig(trials=64))
    assert made.shards[0].tasks[0].trials == 0
    assert made.notes == ()


@pytest.mark.parametrize(
    ("budget", "legs"), [({"trials": 64}, 1), ({"trials": 0}, 0), ({"minutes": 0}, 0)]
)
def test_a_shard_with_claims_to_measure_is_in_the_matrix_where_that_is_paid(
    budget: dict[str, int], legs: int
) -> None:
    for lookup in (MISS, exact()):
        made = plan_with_claims(lookup, ("head",), BudgetConfig(**budget))
        assert len(matrix(made)["include"]) == legs


# The matrix of a plan: a leg for each shard that has something to tune.


def test_the_matrix_gives_each_leg_its_runner_and_a_safe_name() -> None:
    made = plan_of([make_task("a"), make_task("b", target="gpu")])
    assert matrix(made) == {
        "include": [
            {
                "shard": 0,
                "target": "cpu",
                "runner": ["self-hosted", "linux"],
                "name": "shard-0-cpu",
            },
            {"shard": 1, "target": "gpu", "runner": ["self-hosted", "gpu"], "name": "shard-1-gpu"},
        ]
    }


def test_a_shard_that_only_the_cache_serves_is_not_in_the_matrix() -> None:
    tasks = [make_task("a"), make_task("b", target="gpu")]
    legs = matrix(plan_of(tasks, [exact("a"), MISS]))["include"]
    assert [leg["target"] for leg in legs] == ["gpu"]


def planned(
    *models: ModelChange, shards: int | None = None, targets: tuple[TargetConfig, ...] = (CPU,)
) -> tuple[MeasuringShard, ...]:
    tasks = TaskSet(changes=parts.changes(*models), tasks=())
    return plan_measuring(tasks, config_of(None, *targets), shards=shards)


def models(count: int, **fields: object) -> list[ModelChange]:
    return [parts.change(f"m{number}.onnx", **fields) for number in range(count)]


@given(st.integers(1, 30), st.integers(1, 12))
def test_each_model_is_measured_once_and_no_shard_is_empty(count: int, shards: int) -> None:
    found = planned(*models(count), shards=shards)
    assert sorted(m for each in found for m in each.models) == sorted(
        change.path for change in models(count)
    )
    assert len(found) == min(shards, count)
    assert all(each.models for each in found)
    assert [each.index for each in found] == list(range(len(found)))


def test_a_new_model_costs_less_than_one_that_is_compared() -> None:
    (new,) = planned(parts.change("n.onnx", kind="added", base=None))
    (compared,) = planned(parts.change("n.onnx"))
    assert new.predicted_seconds < compared.predicted_seconds / 2


def test_every_target_has_runners_of_its_own() -> None:
    found = planned(*models(4, targets=("cpu", "gpu")), shards=5, targets=(CPU, GPU))
    expected = {(CPU.name, CPU.runner), (GPU.name, GPU.runner)}
    assert {(each.target, each.labels) for each in found} == expected
    assert len(found) == 5
    assert len(planned(*models(4, targets=("cpu", "gpu")), targets=(CPU, GPU))) == 2


def test_what_is_not_built_is_not_measured() -> None:
    assert planned(parts.change("gone.onnx", kind="deleted", head=None), shards=3) == ()
    assert planned(parts.change("m.onnx", targets=()), shards=3) == ()


def test_the_matrix_has_a_leg_for_each_shard() -> None:
    shards = planned(*models(2), shards=2)
    plan = parts.plan(parts.changes(), parts.cache())
    assert measure_matrix(plan) == {"include": []}
    legs = measure_matrix(replace(plan, measuring=shards))["include"]
    assert legs[1] == {
        "shard": 1,
        "target": "cpu",
        "runner": ["self-hosted", "linux"],
        "name": "measure-1-cpu",
    }


@pytest.mark.parametrize("shards", [0, 257])
def test_a_number_of_shards_that_no_ci_takes_is_refused(shards: int) -> None:
    with pytest.raises(ConfigError, match="not a number of shards"):
        planned(*models(1), shards=shards)


# Limits of time follow the budgets.


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [(0.0, 300.0), (1.0, 360.0), (10.0, 900.0), (600.0, 900.0), (None, 900.0)],
)
def test_a_build_may_take_tunings_time_and_5_minutes(minutes: float | None, seconds: float) -> None:
    assert build_seconds(BudgetConfig(minutes=minutes)) == seconds


@pytest.mark.parametrize(("gate", "seconds"), [(10.0, 40.0), (60.0, 90.0), (240.0, 120.0)])
def test_an_answer_may_take_half_a_minute_more_than_its_cell(gate: float, seconds: float) -> None:
    assert answer_seconds(GateConfig(seconds=gate)) == seconds


CHANGES = parts.changes(
    parts.change("a.onnx", targets=("cpu", "gpu")),
    parts.change("b.onnx"),
    parts.change("c.onnx", kind="added", base=None),
)


def shard(index: int, target: str, *models: str) -> MeasuringShard:
    return MeasuringShard(
        index=index, target=target, labels=(), models=models, predicted_seconds=1.0
    )


SHARDS = (shard(0, "cpu", "a.onnx"), shard(1, "cpu", "b.onnx", "c.onnx"), shard(2, "gpu", "a.onnx"))
PLAN: TuningPlan = replace(parts.plan(CHANGES, parts.cache()), measuring=SHARDS)


def test_a_shard_has_its_own_models_on_its_own_target() -> None:
    found = of_shard(PLAN, SHARDS[2]).changes.models
    assert [(change.path, change.targets) for change in found] == [("a.onnx", ("gpu",))]


def test_the_others_share_the_error_unless_they_have_nothing_to_compare_with() -> None:
    assert [compared_elsewhere(PLAN, each) for each in SHARDS] == [2, 2, 2]


# Balanced shards.

loads = st.lists(st.floats(0, 1000), max_size=30)


@given(loads, st.integers(1, 8))
def test_every_load_is_in_exactly_one_bin(sizes: list[float], bins: int) -> None:
    groups = balance_loads(sizes, bins)
    assert len(groups) == bins
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))
