from __future__ import annotations

from pathlib import Path

from tunegate.system.git.working_tree import working_tree


def test_the_nearest_checkout_counts(tmp_path: Path) -> None:
    inner = tmp_path / "checkout" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "checkout" / ".git").mkdir()
    (inner / ".git").write_text("gitdir: elsewhere")
    assert working_tree(inner / "deep") == inner
    assert working_tree(tmp_path / "checkout" / "deep") == tmp_path / "checkout"


def test_a_git_that_is_a_link_counts_too(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("nothing")
    assert working_tree(tmp_path / "deep") == tmp_path
