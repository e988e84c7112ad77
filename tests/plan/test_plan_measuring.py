from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.plans import CPU, GPU, config_of
from tunegate.artifacts.changes import ModelChange
from tunegate.artifacts.plans import MeasuringShard
from tunegate.artifacts.tasks import TaskSet
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.plan.shards import measure_matrix, plan_measuring


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


def test_fifty_models_on_five_runners_take_ten_each() -> None:
    assert [len(each.models) for each in planned(*models(50), shards=5)] == [10] * 5


def test_a_new_model_costs_less_than_one_that_is_compared() -> None:
    (new,) = planned(parts.change("n.onnx", kind="added", base=None))
    (compared,) = planned(parts.change("n.onnx"))
    assert new.predicted_seconds < compared.predicted_seconds / 2


def test_every_target_has_runners_of_its_own() -> None:
    found = planned(*models(4, targets=("cpu", "gpu")), shards=5, targets=(CPU, GPU))
    assert {(each.target, each.labels) for each in found} == {
        (CPU.name, CPU.runner),
        (GPU.name, GPU.runner),
    }
    assert len(found) == 5
    assert len(planned(*models(4, targets=("cpu", "gpu")), targets=(CPU, GPU))) == 2


def test_what_is_not_built_is_not_measured() -> None:
    gone = parts.change("gone.onnx", kind="deleted", head=None)
    assert planned(gone, shards=3) == ()
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
