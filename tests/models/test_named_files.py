from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workspace import Workspace
from tunegate.errors import MeasurementError
from tunegate.models.metric_commands import export_named_files
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path / "checkout", "models: [{path: m.onnx}]\n")
    for name in ("tools/wer.py", "tools/more/words.txt", "labels.json", "toolsmith.py"):
        file = found.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    found.commit()
    return found


def exported(workspace: Workspace, into: Path, *words: str) -> set[str]:
    repository = GitRepository(workspace.root)
    export_named_files(repository, "HEAD", words, into)
    return {str(each.relative_to(into)) for each in into.rglob("*") if each.is_file()}


def test_files_and_whole_directories_are_written(workspace: Workspace, tmp_path: Path) -> None:
    into = tmp_path / "into"
    found = exported(workspace, into, "python", "./tools", "--labels=labels.json")
    assert found == {"tools/wer.py", "tools/more/words.txt", "labels.json"}
    assert (into / "tools/wer.py").read_text() == "tools/wer.py"


def test_what_lies_elsewhere_is_not_written(workspace: Workspace, tmp_path: Path) -> None:
    outside = ("python", "-m", "tool", "../tools", str(workspace.root / "tools"), "", "=", ".")
    assert exported(workspace, tmp_path / "into", *outside) == set()


def test_the_file_of_the_revision_counts_and_not_that_of_the_checkout(
    workspace: Workspace, tmp_path: Path
) -> None:
    (workspace.root / "tools/wer.py").write_text("print(0)")
    exported(workspace, tmp_path / "into", "tools/wer.py")
    assert (tmp_path / "into/tools/wer.py").read_text() == "tools/wer.py"


def test_a_link_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "link.py").symlink_to("/etc/hostname")
    workspace.commit()
    with pytest.raises(MeasurementError, match=r"link\.py is a link"):
        exported(workspace, tmp_path / "into", "link.py")
