"""Watched lock files, where nothing that reads them is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model
from tunegate import upgrades
from tunegate.cli.handlers.doctor_checks import files_check
from tunegate.errors import ConfigError
from tunegate.project import open_project
from tunegate.settings import Settings

CONFIG = b"models: [{path: m.onnx}]\n"


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "UPGRADES_GROUP", "tunegate.of-nobody")


@pytest.mark.parametrize("side", ["base", "head"])
def test_lock_files_that_are_watched_are_never_left_unread(tmp_path: Path, side: str) -> None:
    checkout = new_repository(tmp_path / "r")
    watching = CONFIG + b"watch: {files: [r.txt]}\n"
    model = conv_model().SerializeToString()
    both = (watching, CONFIG) if side == "base" else (CONFIG, watching)
    base, _ = (
        checkout.commit({"m.onnx": model, "tunegate.yaml": config, "r.txt": b"a==1\n"})
        for config in both
    )
    settings = Settings(repository=checkout.path, base=base)
    with pytest.raises(ConfigError, match=r'pip install "tunegate\[upgrades\]"'):
        open_project(settings).review(settings)


def test_nothing_is_asked_for_where_no_file_is_watched(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    model = conv_model().SerializeToString()
    base = checkout.commit({"m.onnx": model, "tunegate.yaml": CONFIG})
    checkout.commit({"m.onnx": conv_model(seed=1).SerializeToString()})
    settings = Settings(repository=checkout.path, base=base)
    review = open_project(settings).review(settings)
    assert [change.kind for change in review.changes.models] == ["modified"]
    assert review.watched is upgrades.NOTHING_WATCHED


def test_doctor_says_what_to_install(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    watching = CONFIG + b"watch: {files: [r.txt]}\n"
    files = {"m.onnx": conv_model().SerializeToString(), "tunegate.yaml": watching}
    checkout.commit({**files, "r.txt": b"a==1\n"})
    (check,) = files_check(open_project(Settings(repository=checkout.path)), [])
    assert (check.name, check.ok) == ("watch", False)
    assert "tunegate[upgrades]" in check.detail
