"""The costs of a run are shared out, and nothing of them is lost or counted twice."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import reports
from tests.support.tuning_tasks import make_outcome, make_task, make_tuning
from tunegate.artifacts.changes import SIDES, ModelPath
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Cost, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskUse
from tunegate.report.history import model_costs, together
from tunegate_cache.format import records

LOOK_UPS: tuple[records.Lookup, ...] = (
    records.ExactHit(()),
    records.TransferHit((), 1.0, ()),
    records.Miss("absent"),
)
model_sets = st.sets(st.sampled_from("abc"), min_size=1)


def task(number: int, models: Sequence[ModelPath], lookup: records.Lookup) -> ResolvedTask:
    uses = tuple(
        TaskUse(model=model, side=side, weight=2, name=f"layer{number}")
        for model in models
        for side in SIDES
    )
    key = records.WorkloadKey(f"{number:064x}", "t" * 64)
    return ResolvedTask(replace(make_task(), key=key, uses=uses), lookup)


def planned(
    tasks: Sequence[ResolvedTask], saved: Cost | None = None, trials: int = 0
) -> TuningPlan:
    plan = reports.slowed().plan
    assert plan is not None
    use = CacheUse(location="cache", zone="main", mode="rw")
    resolution = Resolution(tasks=tuple(tasks), cache=use)
    return replace(plan, resolution=resolution, saved=saved, saved_trials=trials, shards=())


def tuned(tasks: Sequence[ResolvedTask], seconds: Sequence[float], spent: Cost) -> TuningOutcome:
    outcomes = (
        make_outcome("layer", key=each.task.key, before_ms=3.0, best_ms=2.0, seconds=took)
        for each, took in zip(tasks, seconds, strict=True)
    )
    return make_tuning(*outcomes, spent=spent)


@given(
    st.lists(st.tuples(model_sets, st.sampled_from(LOOK_UPS), st.floats(0, 100)), min_size=1),
    st.floats(0, 1000),
    st.floats(0, 50),
)
def test_the_models_of_a_run_add_up_to_what_it_spent(
    rows: list[tuple[set[str], records.Lookup, float]], seconds: float, usd: float
) -> None:
    tasks = [task(at, sorted(models), lookup) for at, (models, lookup, _) in enumerate(rows)]
    saved = Cost(seconds=90.0, usd=0.5)
    outcome = tuned(tasks, [took for *_, took in rows], Cost(seconds=seconds, usd=usd))
    costs = model_costs(planned(tasks, saved, 64), [outcome, outcome], None, {})
    total = together(list(costs.values()))
    hits = sum(isinstance(lookup, records.ExactHit) for _, lookup, _ in rows)
    assert total.tasks == pytest.approx(len(rows))
    assert total.hits == pytest.approx(hits)
    assert total.trials == pytest.approx(8 * len(rows))
    assert total.seconds == pytest.approx(seconds)
    assert total.usd == pytest.approx(usd)
    assert total.saved_seconds == pytest.approx(90.0 if hits else 0.0)
    assert total.saved_trials == pytest.approx(64 if hits else 0)
    assert (total.saved_usd or 0) == pytest.approx(0.5 if hits else 0)


def test_a_model_pays_half_of_what_it_shares_and_gains_all_of_it() -> None:
    tasks = [task(0, "ab", records.Miss("absent")), task(1, "b", records.Miss("absent"))]
    outcome = tuned(tasks, [10, 30], Cost(seconds=80.0, usd=8.0))
    shipped = [(("a", "cpu"), tasks[0].task.key)]
    shipped += [(("b", "cpu"), each.task.key) for each in tasks]
    costs = model_costs(planned(tasks), [outcome], None, {}, shipped)
    assert costs["a", "cpu"].usd == pytest.approx(1.0)
    assert costs["b", "cpu"].usd == pytest.approx(7.0)
    assert costs["a", "cpu"].gained_ms == pytest.approx(2.0)
    assert costs["b", "cpu"].gained_ms == pytest.approx(4.0)


def test_what_ships_with_another_runtime_has_gained_nothing() -> None:
    tasks = [task(0, "ab", records.Miss("absent")), task(1, "b", records.Miss("absent"))]
    outcome = tuned(tasks, [10, 30], Cost(seconds=80.0))
    costs = model_costs(planned(tasks), [outcome], None, {}, [(("b", "cpu"), tasks[0].task.key)])
    assert costs["a", "cpu"].gained_ms == 0
    assert costs["b", "cpu"].gained_ms == pytest.approx(2.0)  # its other layer is not compiled


def test_measuring_has_a_price_where_its_target_has_one() -> None:
    report = reports.slowed()
    (priced,) = model_costs(None, (), report.run, {"cpu": 3600.0}).values()
    (free,) = model_costs(None, (), report.run, {"cpu": None}).values()
    assert priced.gate_seconds == free.gate_seconds > 0
    assert priced.gate_usd == pytest.approx(priced.gate_seconds)
    assert (free.gate_usd, free.usd) == (None, None)
