"""The lines of `tunegate doctor` about watched files."""

from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model

from tunegate.cli.handlers.doctor_checks import files_check
from tunegate.project import open_project
from tunegate.settings import Settings


def test_it_says_of_watched_files_what_each_run_would(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    config = b"models: [{path: m.onnx}]\nwatch: {files: [locks/*.txt, environment.yml]}\n"
    checkout.commit({"m.onnx": conv_model().SerializeToString(), "tunegate.yaml": config})
    (first, second) = files_check(open_project(Settings(repository=checkout.path)), [])
    assert (first.name, first.ok, first.warns) == ("watch", True, True)
    assert first.detail.startswith("watch.files: locks/*.txt matches no committed file")
    assert second.detail.startswith("watch.files: environment.yml matches no committed file")
    checkout.commit({"environment.yml": b""})
    (check,) = files_check(open_project(Settings(repository=checkout.path)), [])
    assert (check.ok, check.detail[:34]) == (False, "watch: environment.yml is not read")
