from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import make_task
from tunegate.tune.budget import TimedTask, is_reached, model_ms, parts_of_target


def timed(name: str, milliseconds: float, weight: int = 1) -> TimedTask:
    return make_task(name, weight=weight), milliseconds


def test_a_model_takes_the_sum_of_its_tasks_as_often_as_they_are_called() -> None:
    ((_, milliseconds),) = model_ms([timed("a", 2.0, weight=3), timed("b", 1.0)]).items()
    assert milliseconds == pytest.approx(7.0)


def test_every_model_must_be_fast_enough() -> None:
    assert is_reached({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.5})
    assert not is_reached({"a": 1.0, "b": 2.6}, {"a": 1.0, "b": 2.5})


def test_without_a_target_nothing_is_fast_enough() -> None:
    assert not is_reached({"a": 0.0}, {})


shards = st.lists(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(1, 9)), max_size=4), min_size=1, max_size=5
)


@given(shards, st.floats(0.1, 50))
def test_the_parts_of_all_shards_are_the_target(
    case: list[list[tuple[float, int]]], target_ms: float
) -> None:
    tasks = [
        [timed(f"{shard}-{i}", ms, weight) for i, (ms, weight) in enumerate(row)]
        for shard, row in enumerate(case)
    ]
    parts = parts_of_target(tasks, target_ms)
    assert len(parts) == len(case)
    if any(case):
        total = sum(part for shard in parts for part in shard.values())
        assert total == pytest.approx(target_ms)
    for mine, part in zip(tasks, parts, strict=True):
        assert set(part) == set(model_ms(mine))
