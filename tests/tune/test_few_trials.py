"""A task of few trials ends with them, unless they contradict what was expected."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import MISS, plan_of
from tests.support.tuning_tasks import make_task
from tunegate.config import BudgetConfig
from tunegate.tune.task_history import Prediction, disagrees, is_enough

AS_EXPECTED = [Prediction(expected, 1 / expected) for expected in (0.2, 0.4, 0.6, 0.8)]
CONTRADICTED = [Prediction(1 - expected, ms) for expected, ms in AS_EXPECTED]


def test_one_batch_is_enough_where_it_bears_out_what_was_expected() -> None:
    assert is_enough(8, 8, AS_EXPECTED)


def test_it_is_never_enough_before_the_last_trial() -> None:
    assert not is_enough(7, 8, AS_EXPECTED)


def test_a_search_goes_on_where_the_model_was_wrong() -> None:
    assert not is_enough(8, 8, CONTRADICTED)


def test_of_few_candidates_ranks_say_nothing() -> None:
    assert not disagrees(CONTRADICTED[:3])


def test_where_all_are_expected_to_be_alike_nothing_is_contradicted() -> None:
    assert not disagrees([Prediction(0.5, ms) for ms in (1.0, 2.0, 3.0, 4.0, 5.0)])


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 100)), min_size=4, max_size=20))
def test_what_is_contradicted_is_borne_out_the_other_way_round(
    pairs: list[tuple[float, float]],
) -> None:
    predictions = [Prediction(*pair) for pair in pairs]
    mirrored = [Prediction(-expected, ms) for expected, ms in predictions]
    assert not (disagrees(predictions) and disagrees(mirrored))


def test_no_task_is_planned_more_than_its_own_limit() -> None:
    budget = BudgetConfig(trials=600, trials_per_task=8)
    (shard,) = plan_of([make_task("a"), make_task("b")], [MISS] * 2, budget=budget).shards
    assert {task.trials for task in shard.tasks} | {shard.budget.trials_per_task} == {8}
