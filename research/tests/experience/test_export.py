from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tune.test_prior import gpu_experience

from research.experience import export
from research.experience.lines import read_experience
from research.experience.zone import append_task, device_digest
from research.experience.zone_tasks import write_task
from research.tests.experience.test_zone_tasks import TASK
from tunegate_cache.format.decompression import decompress
from tunegate_cache.stores.files import FileStore


def test_every_task_of_the_zone_is_a_line_of_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = FileStore(tmp_path / "cache")
    write_task(store, TASK)
    append_task(store, b"[\n", device=device_digest("some cpu", 1), layer="f" * 16)
    file = tmp_path / "experience.jsonl"
    line = [str(file), "--cache-url", str(tmp_path / "cache")]
    line += ["--repository", str(tmp_path)]
    assert export.main(line) == 0
    assert "1 task with 30 measurements; 1 line refused" in capsys.readouterr().out
    assert read_experience(file.read_bytes().splitlines()) == ((TASK,), 0)
    assert export.main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refused"] == 1


def test_tasks_of_one_kind_are_packed_as_a_search_reads_them(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "cache")
    for task in (TASK, gpu_experience()):
        write_task(store, task)
    file = tmp_path / "cuda.jsonl.zst"
    line = [str(file), "--kind", "cuda", "--cache-url", str(tmp_path / "cache")]
    assert export.main([*line, "--repository", str(tmp_path)]) == 0
    lines = decompress(file.read_bytes()).splitlines()
    assert read_experience(lines) == ((gpu_experience(),), 0)


def test_a_file_that_cannot_be_written_asks_for_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    line = [str(tmp_path / "taken" / "x.jsonl")]
    line += ["--cache-url", str(tmp_path / "cache"), "--repository", str(tmp_path)]
    assert export.main(line) != 0
    said = capsys.readouterr().err
    assert said.rstrip().endswith("Name another file.")
    assert "--out" not in said
