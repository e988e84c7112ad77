"""Environments of lock files, made by the real uv and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.package_index import Index, serving_packages, small_wheel

from tunegate_upgrades.environments import kept_environments
from tunegate_upgrades.environments.kept_environments import KeptEnvironments, is_whole
from tunegate_upgrades.environments.uv import Uv, UvError
from tunegate_upgrades.lock_files.lock import PinnedPackage

OLD, NEW = PinnedPackage(name="fast", version="1.0"), PinnedPackage(name="fast", version="2.0")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.0", "2.0"):
        small_wheel(wheels, "fast", version=version, text=f"VALUE = {version}\n")
    with serving_packages(wheels) as server:
        yield server


def kept(tmp_path: Path, index: Index) -> KeptEnvironments:
    indexes = (index.address,)
    return KeptEnvironments(tmp_path / "kept", Uv(indexes, tmp_path / "uv"), indexes)


def module_of(environment: Path) -> Path:
    (found,) = environment.glob("lib/*/site-packages/fast.py")
    return found


def test_an_environment_is_made_once_and_made_again_when_it_is_damaged(
    tmp_path: Path, index: Index
) -> None:
    with kept(tmp_path, index) as environments:
        made = environments.environment([OLD])
        assert is_whole(made)
        assert environments.environment([OLD]) == made
        assert module_of(made).read_text() == "VALUE = 1.0\n"
    asked = len(index.asked)
    with kept(tmp_path, index) as environments:
        assert environments.environment([OLD]) == made
        assert len(index.asked) == asked
    module_of(made).unlink()
    with kept(tmp_path, index) as environments:
        assert module_of(environments.environment([OLD])).is_file()
    assert not list((tmp_path / "kept").glob("*.making"))


def test_one_that_cannot_be_made_leaves_nothing(tmp_path: Path, index: Index) -> None:
    with kept(tmp_path, index) as environments, pytest.raises(UvError, match="fast"):
        environments.environment([PinnedPackage(name="fast", version="9.0")])
    assert [each.suffix for each in (tmp_path / "kept").iterdir()] == [".lock"]


def test_the_oldest_go_where_all_are_too_large_but_none_that_is_used(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_environments, "MAX_KEPT_BYTES", 1)
    with kept(tmp_path, index) as environments:
        old = environments.environment([OLD])
        new = environments.environment([NEW])
        assert is_whole(old)
        assert is_whole(new)
    with kept(tmp_path, index) as environments:
        environments.environment([OLD])
        assert is_whole(new)  # nothing was made, so nothing is removed
    module_of(old).unlink()
    with kept(tmp_path, index) as environments:
        environments.environment([OLD])
    assert not new.exists()
