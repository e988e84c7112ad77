from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import cache_directory
from tunegate.system.cache.user_directories import cache_home, state_home


def test_without_variables_everything_is_where_it_was() -> None:
    usual = Path("~/.cache/tunegate").expanduser()
    assert (cache_home({}), state_home({})) == (usual, usual)


def test_the_variables_name_the_directories_of_a_new_user(tmp_path: Path) -> None:
    variables = {"XDG_CACHE_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": str(tmp_path / "s")}
    assert cache_home(variables) == tmp_path / "c" / "tunegate"
    assert state_home(variables) == tmp_path / "s" / "tunegate"


def test_a_relative_directory_is_ignored() -> None:
    assert cache_home({"XDG_CACHE_HOME": "cache"}) == cache_home({})


def test_what_an_earlier_version_left_stays_in_use(tmp_path: Path) -> None:
    usual = Path("~/.cache/tunegate").expanduser()
    (usual / "ms1").mkdir(parents=True)
    variables = {"XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    assert cache_home(variables) == usual
    assert state_home(variables) == tmp_path / "tunegate"
    (usual / "undelivered").mkdir()
    assert state_home(variables) == usual


def test_a_directory_that_is_in_use_is_kept_whatever_comes_later(tmp_path: Path) -> None:
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    (tmp_path / "tunegate" / "ms1").mkdir(parents=True)
    (Path("~/.cache/tunegate").expanduser() / "tier").mkdir(parents=True)
    assert cache_home(variables) == tmp_path / "tunegate"


def test_the_default_cache_is_the_users_and_another_is_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory(CacheConfig().url, tmp_path) == tmp_path / "tunegate"
    elsewhere = Path("~/elsewhere").expanduser()
    assert cache_directory("~/elsewhere", tmp_path) == elsewhere
