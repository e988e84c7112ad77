"""What `tunegate doctor` says of watched files."""

from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model

from tunegate.cli.handlers.doctor_checks import files_check
from tunegate.project import open_project
from tunegate.settings import Settings


def test_a_glob_that_matches_nothing_is_a_warning(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    config = b"models: [{path: m.onnx}]\nwatch: {files: [locks/*.txt, tunegate.yaml]}\n"
    checkout.commit({"m.onnx": conv_model().SerializeToString(), "tunegate.yaml": config})
    (check,) = files_check(open_project(Settings(repository=checkout.path)), [])
    assert (check.name, check.ok, check.warns) == ("watch", True, True)
    assert check.detail.startswith("watch.files: locks/*.txt matches no committed file")
