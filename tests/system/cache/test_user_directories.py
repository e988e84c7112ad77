from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate.system.cache import shared_cache


def test_without_variables_everything_is_where_it_was() -> None:
    usual = Path("~/.cache/tunegate").expanduser()
    assert (shared_cache.cache_home({}), shared_cache.state_home({})) == (usual, usual)


def test_the_variables_name_the_directories_of_a_new_user(tmp_path: Path) -> None:
    variables = {"XDG_CACHE_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": str(tmp_path / "s")}
    assert shared_cache.cache_home(variables) == tmp_path / "c" / "tunegate"
    assert shared_cache.state_home(variables) == tmp_path / "s" / "tunegate"


@pytest.mark.parametrize("home", ["~", "rel"])
def test_variables_stand_for_a_home(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home)
    assert shared_cache.cache_home({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tunegate"
    with pytest.raises(ConfigError, match="Set HOME"):
        shared_cache.cache_home({})


def test_the_default_cache_is_the_users_and_another_is_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert shared_cache.cache_directory(CacheConfig().url, tmp_path) == tmp_path / "tunegate"
    elsewhere = Path("~/elsewhere").expanduser()
    assert shared_cache.cache_directory("~/elsewhere", tmp_path) == elsewhere
    with pytest.raises(ConfigError, match=r"^~nobody-here/x: the home directory is not known"):
        shared_cache.cache_directory("~nobody-here/x", tmp_path)


# A cache in the checkout, and what a checkout may bring in its place.


@pytest.fixture
def project(tmp_path: Path) -> Checkout:
    project = new_repository(tmp_path / "project")
    project.commit({"README.md": b"words"})
    return project


def test_a_relative_directory_lies_in_the_checkout(project: Checkout) -> None:
    assert shared_cache.cache_directory("cache", project.path) == project.path / "cache"


def test_records_that_were_committed_are_refused(project: Checkout) -> None:
    project.commit({"cache/ms1/z/main/segment": b"claims"})
    with pytest.raises(ConfigError, match="git tracks files in it"):
        shared_cache.cache_directory("cache", project.path)


@pytest.mark.parametrize("url", ["cache", "cache/of/models"])
def test_a_directory_in_a_submodule_is_the_checkouts(project: Checkout, url: str) -> None:
    commit = project.commit({"README.md": b"other words"})
    project.git("update-index", "--add", "--cacheinfo", f"160000,{commit},cache")
    (project.path / "cache" / "of").mkdir(parents=True)
    (project.path / "cache" / "of" / "segment").write_bytes(b"claims")
    (project.path.parent / "link").symlink_to(project.path)
    for each in (url, str(project.path.parent / "link" / url)):
        with pytest.raises(ConfigError, match="git tracks files in it"):
            shared_cache.cache_directory(each, project.path)


@pytest.mark.parametrize("url", ["cache", "cache/of/models"])
def test_a_link_of_the_checkout_is_refused(project: Checkout, tmp_path: Path, url: str) -> None:
    (project.path / "cache").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="cache is a symbolic link"):
        shared_cache.cache_directory(url, project.path)


@pytest.mark.parametrize(
    "name", ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DATA_PATH", "HOME"]
)
@pytest.mark.parametrize("is_relative", [True, False])
def test_settings_of_s3_that_were_committed_are_refused(
    project: Checkout, monkeypatch: pytest.MonkeyPatch, name: str, is_relative: bool
) -> None:
    """They name a program to run and a server that gets the job's credentials."""
    config = CacheConfig(url="s3://bucket/prefix")
    monkeypatch.chdir(project.path)
    file = "" if name == "HOME" else ".aws/config"
    monkeypatch.setenv(name, file or "." if is_relative else str(project.path / file))
    shared_cache.open_shared_store(config, root=project.path)
    project.commit({".aws/config": b"[default]\ncredential_process = ./evil\n"})
    with pytest.raises(ConfigError, match=r": .*\.aws/config: git tracks it"):
        shared_cache.open_shared_store(config, root=project.path)
