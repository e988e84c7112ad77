"""A second verdict that is none: edited, of the same machine, or reached by other rules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e
SLOWER = ("--commands", "echo 1", "echo 2")


def refusal(workspace: Workspace, first: str, second: str) -> str:
    done = workspace.tunegate("confirm", f"{first}/verdict.json", f"{second}/verdict.json")
    assert done.returncode == 2, done.stderr
    assert not (workspace.root / ".tunegate").exists()
    return done.stderr


def test_only_another_machines_look_at_the_same_confirms(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "checkout", NOT_COMPILED)
    assert workspace.tunegate("compare", *SLOWER, "--out", "a").returncode == 1
    assert workspace.tunegate("compare", *SLOWER, "--out", "b").returncode == 1
    assert "of one and the same machine" in refusal(workspace, "a", "b")
    assert "of one and the same run" in refusal(workspace, "a", "a")
    edited = Path(shutil.copytree(workspace.root / "a", workspace.root / "edited"))
    verdict = edited / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"fail"', '"pass"'))
    assert "edited/verdict.json: not as tunegate wrote it" in refusal(workspace, "a", "edited")
