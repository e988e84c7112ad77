from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.tune.test_prior import experience

from research.experience import evaluate

ROWS = experience().rows[:17]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tasks = (msgspec.structs.replace(experience(), name=name, rows=ROWS) for name in "ab")
    path = tmp_path / "measured.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, tasks)))
    return path


def test_each_way_and_its_controls_are_told_in_a_table_and_as_json(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main([str(file)]) == 0
    shown = capsys.readouterr().out
    assert "2 tasks, 34 measurements" in shown
    for way in ("trees", "random", "trees, times shuffled", "trees, from scratch"):
        assert way in shown
    assert "16 random + 8" in shown
    assert evaluate.main([str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["measurements"]) == (2, 34)
    assert all(one["low"] <= one["median"] <= one["high"] for one in found["judged"])


def test_one_task_alone_leaves_nothing_to_learn_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(msgspec.json.encode(experience()))
    assert evaluate.main([str(path)]) == 2
    assert "nothing can be left out" in capsys.readouterr().err
