"""Models in a submodule are not checked, and a change that moves one is told so."""

from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import Checkout, new_repository
from tunegate.artifacts.changes import Revisions
from tunegate.models.reader import GitModelReader
from tunegate.review.detect import moved_submodules
from tunegate.system.git.repository import GitRepository

OLD, NEW = "1" * 40, "2" * 40


def submodule_at(project: Checkout, commit: str) -> str:
    """The commit of the project that has the submodule there."""
    entry = f"160000,{commit},shared/models"
    project.git("update-index", "--add", "--cacheinfo", entry)
    project.git("commit", "-q", "-m", "a submodule")
    return project.git("rev-parse", "HEAD")


def notes(project: Checkout, base: str | None, head: str) -> list[str]:
    reader = GitModelReader(GitRepository(project.path))
    return [*moved_submodules(reader, Revisions(base=base, head=head, reason="given"))]


def test_a_submodule_that_moves_is_named(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    base, head = submodule_at(project, OLD), submodule_at(project, NEW)
    assert notes(project, base, head) == [
        (
            "the submodule shared/models is at another commit (222222222222, before 111111111111), "
            "and models in it are not checked: gate them with --repository shared/models "
            "--base 111111111111 --head 222222222222"
        )
    ]


def test_a_new_submodule_is_named_and_one_that_stays_is_not(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    base, head = project.commit({"a": b"a"}), submodule_at(project, OLD)
    (said,) = notes(project, base, head)
    assert notes(project, None, head) == [said]
    assert said.startswith("the submodule shared/models is new, at commit 111111111111, and ")
    assert said.endswith("gate them with --repository shared/models --no-base")
    assert notes(project, head, head) == []
