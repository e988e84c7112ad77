"""One budget over several targets."""

from __future__ import annotations

import pytest

from tests.support.tuning_tasks import exact, make_task
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.config import BudgetConfig, Config, ModelConfig, TargetConfig
from tunegate.plan.allocation import TargetPart, target_parts
from tunegate_cache.format.records import Miss

CPU = TargetConfig(name="cpu", usd_per_hour=1.0)
GPU = TargetConfig(name="gpu", kind="cuda", usd_per_hour=4.0)


def parts(
    cpu: int, gpu: int, *, shards: int | None = None, known: int = 0, **budget: float
) -> tuple[TargetPart, ...]:
    config = Config(
        models=(ModelConfig(path="*.onnx"),),
        targets=(CPU, GPU),
        budget=BudgetConfig(**budget),  # type: ignore[arg-type]  # trials is whole
    )
    tasks = [
        ResolvedTask(make_task(f"{target}{number}", target=target), Miss("absent"))
        for target, count in (("cpu", cpu), ("gpu", gpu))
        for number in range(count)
    ]
    tasks += [ResolvedTask(make_task(f"known{n}"), exact(f"known{n}")) for n in range(known)]
    return target_parts(tasks, config, shards=shards)


def test_a_target_without_tasks_has_no_part() -> None:
    assert [part.target.name for part in parts(2, 0)] == ["cpu"]


def test_trials_are_shared_by_the_tasks_left_to_tune() -> None:
    assert [part.trials for part in parts(3, 1, known=9, trials=100)] == [75, 25]


def test_one_after_the_other_the_targets_share_the_minutes() -> None:
    seconds = [part.seconds or 0 for part in parts(1, 1, minutes=10)]
    assert sum(seconds) == pytest.approx(600)
    assert all(seconds)


def test_side_by_side_each_has_all_the_minutes() -> None:
    assert [part.seconds for part in parts(1, 1, minutes=10, shards=2)] == [600, 600]


def test_money_buys_the_same_time_per_task_on_either_target() -> None:
    cpu, gpu = parts(1, 1, usd=10.0)
    assert (cpu.usd or 0) + (gpu.usd or 0) == pytest.approx(10.0)
    seconds = [(part.usd or 0) / (part.usd_per_hour or 1) for part in (cpu, gpu)]
    shares = [(part.seconds or 0) for part in (cpu, gpu)]
    assert seconds[0] / seconds[1] == pytest.approx(shares[0] / shares[1])


def test_the_whole_machine_time_is_that_of_all_its_shards() -> None:
    (part,) = parts(4, 0, minutes=10, shards=4)
    assert (part.shards, part.machine_seconds) == (4, 2400)


def test_no_target_gets_more_shards_than_it_has_tasks_to_tune() -> None:
    assert [part.shards for part in parts(2, 3, known=10, shards=64)] == [2, 3]


def test_every_target_gets_a_shard_even_if_fewer_were_asked_for() -> None:
    assert [part.shards for part in parts(2, 3, shards=1)] == [1, 1]
