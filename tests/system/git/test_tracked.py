from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import new_repository
from tunegate.system.git.checkout import first_tracked


def test_the_first_file_that_git_tracks_in_a_directory_is_named(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "checkout")
    checkout.commit({"cache/b": b"x", "cache/a": b"x", "other": b"x"})
    assert first_tracked(checkout.path, checkout.path / "cache") == "cache/a"


def test_a_submodule_above_a_directory_has_all_that_is_in_it(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "checkout")
    commit = checkout.commit({"other": b"x"})
    checkout.git("update-index", "--add", "--cacheinfo", f"160000,{commit},deps/sub")
    for inside in ("deps/sub", "deps/sub/cache", "deps/sub/a/b"):
        assert first_tracked(checkout.path, checkout.path / inside) == "deps/sub"
    assert first_tracked(checkout.path, checkout.path / "deps") == "deps/sub"
    assert first_tracked(checkout.path, checkout.path / "deps/other") == ""


def test_files_that_only_lie_there_are_none(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "checkout")
    checkout.commit({"other": b"x"})
    (checkout.path / "cache").mkdir()
    (checkout.path / "cache" / "a").write_bytes(b"x")
    assert first_tracked(checkout.path, checkout.path / "cache") == ""
