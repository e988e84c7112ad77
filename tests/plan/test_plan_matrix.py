"""The matrix of a plan: a leg for each shard that has something to tune."""

from __future__ import annotations

from tests.support.plans import MISS, plan_of
from tests.support.tuning_tasks import exact, make_task
from tunegate.plan.shards import matrix


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
