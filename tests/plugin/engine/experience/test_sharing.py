from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.plugin.engine.experience.test_measured_tasks import TASK
from tests.plugin.engine.experience.test_teaching_tuner import SHARD, BatchesOfOne
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.cost_model.experience import TaskExperience
from tunegate.engine.experience.sharing import sharing, teaches_others
from tunegate_cache.maintenance.experience import all_tasks
from tunegate_cache.stores.files import FileStore


def config(cache: Mapping[str, object] | None = None) -> Config:
    shared = CacheConfig(url="cache", share_experience=True)
    given = msgspec.structs.replace(shared, **(cache or {}))
    target = TargetConfig(name="cpu", threads=2)
    return Config(models=(ModelConfig(path="m.onnx"),), targets=(target,), cache=given)


def opened(config: CacheConfig, *, root: Path) -> FileStore:
    return FileStore(root / config.url)


def shared(place: Path, config: Config) -> list[str]:
    """The warnings of a run with this configuration."""
    warnings: list[str] = []
    tuner = sharing(BatchesOfOne(), config, opened, place, warnings.append)
    list(tuner.tune(SHARD, {}, lambda _: True))
    return warnings


@pytest.mark.parametrize(
    ("cache", "is_kept"),
    [
        ({}, True),
        ({"share_experience": False}, False),
        ({"mode": "ro"}, False),
        ({"zone": "pr/7"}, False),
        ({"zone": "pr/7", "read_zones": ("pr/7",)}, True),
    ],
)
def test_only_runs_of_a_trusted_zone_that_may_write_teach_others(
    cache: dict[str, object], is_kept: bool
) -> None:
    assert teaches_others(config(cache=cache)) == is_kept


def test_nobody_is_taught_unless_the_configuration_says_so() -> None:
    assert not CacheConfig().share_experience


def test_what_a_run_measured_is_a_line_without_names_of_models_or_nodes(tmp_path: Path) -> None:
    assert shared(tmp_path, config()) == []
    (line,) = all_tasks(FileStore(tmp_path / "cache"))
    task = msgspec.json.decode(line, type=TaskExperience)
    assert (task.kind, task.threads) == ("conv2d_add", 2)
    assert task.layer == TASK.key.workload[:16]
    assert b"m.onnx" not in line


def test_a_cache_that_takes_no_line_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    (warning,) = shared(tmp_path, config())
    assert warning.startswith("measured tasks were not written to zone exp (")
