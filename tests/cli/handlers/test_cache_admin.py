from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compacted_place import MAIN
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.config import CacheConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.settings import Overrides, Settings
from tunegate.system.cache.shared_cache import VARIABLE
from tunegate_cache.stores.store import StoreUnavailableError


@pytest.fixture(autouse=True)
def unsigned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def settings(root: Path, *, url: str | None = None, zone: str | None = None) -> Settings:
    return Settings(repository=root, overrides=Overrides({"cache.url": url, "cache.zone": zone}))


def test_a_directory_without_a_configuration_has_the_default_cache(tmp_path: Path) -> None:
    admin = open_cache_admin(settings(tmp_path))
    assert (admin.config.zone, admin.root, admin.signer) == ("main", tmp_path, None)
    assert admin.config.url == CacheConfig().url


def test_the_cache_is_the_one_that_the_configuration_names(tmp_path: Path) -> None:
    text = f"models:\n  - path: m.onnx\ncache:\n  url: {tmp_path / 'shared'}\n"
    (tmp_path / "tunegate.yaml").write_text(text)
    admin = open_cache_admin(settings(tmp_path))
    admin.store.write(f"{MAIN.prefix}idx/{'a' * 64}.idx", b"x")
    assert (tmp_path / "shared").is_dir()
    assert admin.groups(None) == admin.groups("main") == (MAIN,)
    assert admin.groups("team") == ()


def test_an_argument_counts_more_than_the_file(tmp_path: Path) -> None:
    admin = open_cache_admin(settings(tmp_path, url=str(tmp_path / "other"), zone="dev/me"))
    assert (admin.config.url, admin.config.zone) == (str(tmp_path / "other"), "dev/me")


def test_a_trusted_key_that_is_none_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    text = "models:\n  - path: m.onnx\ncache:\n  trusted-keys: {main: [abc]}\n"
    (tmp_path / "tunegate.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"cache\.trusted-keys"):
        open_cache_admin(settings(tmp_path))


def test_a_cache_that_does_not_answer_ends_its_command_with_what_to_run() -> None:
    with (
        pytest.raises(EnvironmentUnfitError, match="tunegate cache doctor") as raised,
        answering(CacheConfig(url="s3://bucket")),
    ):
        raise StoreUnavailableError("no route")
    assert "s3://bucket does not answer (no route)" in str(raised.value)
