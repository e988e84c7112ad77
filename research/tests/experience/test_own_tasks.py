from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from research.experience import own_tasks
from research.experience.judging.measured_task import in_columns
from research.tests.experience.judging.test_prior_trial import contrary
from tunegate.tune.prior import TaskExperience, prior_of


def opposed(name: str) -> TaskExperience:
    """A task whose fast candidates are those that the shipped trees expect to be slow."""
    task, ships = contrary(name), prior_of("llvm")
    assert ships is not None
    expected = ships.ratios(in_columns(task).columns.tolist())
    rows = zip(task.rows, expected.tolist(), strict=True)
    slowed = tuple((n, 0.1 + ratio**2, decided) for (n, _, decided), ratio in rows)
    return msgspec.structs.replace(task, rows=slowed)


def written(path: Path, count: int) -> str:
    path.write_bytes(b"\n".join(msgspec.json.encode(opposed(str(n))) for n in range(count)))
    return str(path)


def test_own_tasks_are_judged_on_layers_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert own_tasks.main([written(tmp_path / "own.jsonl", 8)]) == 0
    assert "on 8 tasks left out. They are better." in capsys.readouterr().out


def test_few_tasks_show_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert own_tasks.main([written(tmp_path / "own.jsonl", 2)]) == 0
    assert "Nothing is shown" in capsys.readouterr().out


def test_without_a_file_there_is_nothing_to_judge(capsys: pytest.CaptureFixture[str]) -> None:
    assert own_tasks.main([]) == 2
    assert "give a FILE" in capsys.readouterr().err
