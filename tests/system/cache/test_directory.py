"""A cache in the checkout, and what a checkout may bring in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.errors import ConfigError
from tunegate.system.cache.shared_cache import cache_directory


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    project = new_repository(tmp_path / "project")
    project.commit({"README.md": b"words"})
    return project


def test_a_relative_directory_lies_in_the_checkout(project: Checkout) -> None:
    assert cache_directory("cache", project.path) == project.path / "cache"


def test_a_directory_elsewhere_is_nobodys_business(project: Checkout, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert cache_directory(str(tmp_path / "link"), project.path) == tmp_path / "link"
    assert cache_directory("../outside", project.path) == tmp_path / "outside"


def test_records_that_were_committed_are_refused(project: Checkout) -> None:
    project.commit({"cache/ms1/z/main/segment": b"claims"})
    with pytest.raises(ConfigError, match="git tracks files in it"):
        cache_directory("cache", project.path)


@pytest.mark.parametrize("url", ["cache", "cache/of/models"])
def test_a_directory_in_a_submodule_is_the_checkouts(project: Checkout, url: str) -> None:
    commit = project.commit({"README.md": b"other words"})
    project.git("update-index", "--add", "--cacheinfo", f"160000,{commit},cache")
    (project.path / "cache" / "of").mkdir(parents=True)
    (project.path / "cache" / "of" / "segment").write_bytes(b"claims")
    with pytest.raises(ConfigError, match="git tracks files in it"):
        cache_directory(url, project.path)


@pytest.mark.parametrize("url", ["cache", "cache/of/models"])
def test_a_link_of_the_checkout_is_refused(project: Checkout, tmp_path: Path, url: str) -> None:
    (project.path / "cache").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="cache is a symbolic link"):
        cache_directory(url, project.path)
