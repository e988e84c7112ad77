from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.tune.test_prior import experience, gpu_experience

from research.experience.data_files import measured_tasks, tasks_of_cpus
from tunegate.errors import ArtifactError, ConfigError
from tunegate.tune.prior import experience_of


def test_without_a_file_it_is_what_comes_with_this_version() -> None:
    assert measured_tasks(()) == tuple(experience_of("llvm"))


def test_all_files_are_read_in_their_order(tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(experience(), name=file.stem)))
    assert [task.name for task in measured_tasks(files)] == ["a", "b"]


def test_tasks_of_cpus_and_of_gpus_are_not_taught_together(tmp_path: Path) -> None:
    files = [tmp_path / "cpus.jsonl", tmp_path / "gpus.jsonl"]
    for file, task in zip(files, (experience(), gpu_experience()), strict=True):
        file.write_bytes(msgspec.json.encode(task))
    with pytest.raises(ConfigError, match="--kind llvm, or --kind cuda"):
        measured_tasks(files)
    assert measured_tasks(files[1:]) == (gpu_experience(),)
    with pytest.raises(ConfigError, match="tasks of GPUs"):
        tasks_of_cpus(files[1:])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"gone\.jsonl: cannot be read"):
        measured_tasks([tmp_path / "gone.jsonl"])


@pytest.mark.parametrize(
    "line", [b"{}", b"[" * 5000, b"", b"\xff", b'{"name":"","sketches":[],"rows":[]}']
)
def test_the_line_that_is_no_measured_task_is_named(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "bad.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ArtifactError, match=r"bad\.jsonl: line 1 is no measured task"):
        measured_tasks([tmp_path / "bad.jsonl"])
