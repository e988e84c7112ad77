"""Which server git-lfs is sent to, by a git-lfs that writes down what git's settings say."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.system.git.content import lfs_download
from tunegate.system.git.process import GitProcess

SCRIPT = """\
#!/bin/sh
git config --get lfs.url > '{asked}' || echo 'the usual one' > '{asked}'
echo content
"""
THEIRS = b"[lfs]\n\turl = https://elsewhere.invalid/\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git-lfs"
    program.write_text(SCRIPT.format(asked=tmp_path / "asked"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "asked"


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    checkout = new_repository(tmp_path / "project")
    checkout.commit({"m.onnx": b"pointer"})
    return checkout


def downloaded(project: Checkout) -> bytes:
    answer = BytesIO()
    is_had = lfs_download(GitProcess(project.path), b"pointer", "m.onnx", into=answer)
    return answer.getvalue() if is_had else b""


def test_the_usual_server_is_asked(project: Checkout, asked: Path) -> None:
    assert downloaded(project) == b"content\n"
    assert asked.read_text() == "the usual one\n"


@pytest.mark.parametrize("place", ["working tree", "index", "head"])
def test_a_server_that_the_checkout_names_is_not_asked(
    project: Checkout, asked: Path, place: str
) -> None:
    if place == "working tree":
        (project.path / ".lfsconfig").write_bytes(THEIRS)
    elif place == "index":
        (project.path / ".lfsconfig").write_bytes(THEIRS)
        project.git("add", ".lfsconfig")
        (project.path / ".lfsconfig").unlink()
    else:
        project.commit({".lfsconfig": THEIRS})
        project.git("rm", "-q", ".lfsconfig")
    assert downloaded(project) == b""
    assert not asked.exists()


def test_a_server_that_the_job_names_is_asked_whatever_the_checkout_says(
    project: Checkout, asked: Path
) -> None:
    project.commit({".lfsconfig": THEIRS})
    project.git("config", "lfs.url", "https://ours.invalid/")
    assert downloaded(project) == b"content\n"
    assert asked.read_text() == "https://ours.invalid/\n"


def test_without_git_lfs_nothing_is_had(project: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert downloaded(project) == b""
