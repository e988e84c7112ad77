from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.tune.test_prior import experience

from research.experience import evaluate, train

ROWS = experience().rows[:12]


def written(path: Path, names: str) -> str:
    tasks = (replace(experience(), name=name, rows=ROWS) for name in names)
    path.write_bytes(b"\n".join(map(msgspec.json.encode, tasks)))
    return str(path)


def test_a_trained_network_is_judged_on_what_it_has_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("optax")
    seen, new = written(tmp_path / "a.jsonl", "ab"), written(tmp_path / "b.jsonl", "c")
    out = tmp_path / "out"
    assert train.main([seen, "--out", str(out)]) == 0
    assert "meta-trained on 2 tasks with 24 measurements" in capsys.readouterr().out
    asked = [seen, new, "--trained", str(out), "--json"]
    assert evaluate.main(asked) == 0
    judged = json.loads(capsys.readouterr().out)["judged"]
    ways = {one["way"] for one in judged}
    assert {"network", "network, meta-trained", "network, frozen", "trees", "random"} <= ways
    assert {one["tasks"] for one in judged} == {1}
    assert evaluate.main([seen, "--trained", str(out)]) == 2
    assert "was trained on all of them" in capsys.readouterr().err


def test_one_task_alone_is_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "a.jsonl", "a")
    assert train.main([file, "--out", str(tmp_path / "out")]) == 2
    assert "one task teaches nothing" in capsys.readouterr().err
