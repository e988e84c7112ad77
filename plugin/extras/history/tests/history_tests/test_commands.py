from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.history import entry, history
from tests.support.reference_page import command_section
from tests.support.workspace import Workspace

from tunegate.artifacts.measurements import Interval
from tunegate.cli.main import main
from tunegate.config import CacheConfig
from tunegate.system.cache.history_log import write_history
from tunegate_cache.stores.files import FileStore
from tunegate_history.commands import BISECT, HISTORY
from tunegate_history.history import bisect_offers


def test_the_page_of_the_extra_lists_every_option() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    shared = "](../../../docs/commands.md#options-"
    for command in (HISTORY, BISECT):
        assert command_section(command).strip("\n").replace("](#options-", shared) in page


def test_the_latest_runs_are_written_as_a_page_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    store = FileStore(workspace.root / "cache")
    for at, line in enumerate(history()):
        config = CacheConfig(url="cache", zone="main")
        assert write_history(store, config, [line], at, FileStore(tmp_path / "kept")) == ""
    asked = ["history", "--repository", str(workspace.root), "--out", str(tmp_path / "out")]
    assert main([*asked, "--runs", "3"]) == 0
    assert "3 lines of history" in capsys.readouterr().out
    assert "NVIDIA H200" in (tmp_path / "out" / "history.html").read_text()
    assert main([*asked, "--runs", "3", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == 3


def test_a_model_that_drifted_is_offered_the_search_for_its_commit() -> None:
    changes = [0.0, -4.0, 3.0, 3.0, 3.0]
    rows = [
        entry(at, change_percent=Interval(low=each - 1, center=each, high=each + 1))
        for at, each in enumerate(changes)
    ]
    beside = entry(9, change=7, change_percent=Interval(low=80, center=90, high=99))
    (line,) = bisect_offers([*rows, beside])
    assert "got 9.3% slower since its fastest run" in line
    assert "tunegate bisect 010101010101..040404040404 --model models/squeezenet.onnx" in line
    assert bisect_offers(rows[:3]) == ()
