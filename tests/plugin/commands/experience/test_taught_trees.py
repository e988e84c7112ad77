from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.plugin.cost_model.judging.test_prior_trial import contrary
from tunegate.cli.main import main
from tunegate.cost_model.experience import TaskExperience
from tunegate.cost_model.measured_task import in_columns
from tunegate.cost_model.prior import prior_of
from tunegate.cost_model.team_prior import read_team_prior


def opposed(name: str) -> TaskExperience:
    """What the trees that ship expect to be fast is slow."""
    task, ships = contrary(name), prior_of("llvm")
    assert ships is not None
    expected = ships.ratios(in_columns(task).columns.tolist())
    rows = zip(task.rows, expected.tolist(), strict=True)
    slowed = tuple((n, 0.1 + ratio**2, decided) for (n, _, decided), ratio in rows)
    return msgspec.structs.replace(task, rows=slowed)


def written(path: Path, count: int) -> str:
    path.write_bytes(b"\n".join(msgspec.json.encode(opposed(str(n))) for n in range(count)))
    return str(path)


def test_own_tasks_are_judged_and_written_for_searches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = written(tmp_path / "own.jsonl", 8), tmp_path / "out"
    assert main(["experience", "train", file, "--trees", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "trees that know 8 tasks more" in shown
    assert "on 8 tasks left out. Commit it, and name it as cache.prior." in shown
    assert len(read_team_prior((out / "prior.json").read_bytes()).tasks) == 8


def test_few_tasks_are_written_but_no_search_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["experience", "train", written(tmp_path / "own.jsonl", 2), "--trees"]
    assert main([*asked, "--out", str(tmp_path / "out")]) == 0
    assert "Searches do not take it" in capsys.readouterr().out


def test_without_a_file_there_is_nothing_to_teach(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experience", "train", "--trees"]) == 2
    assert "give a FILE" in capsys.readouterr().err
