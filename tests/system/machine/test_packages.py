import os
from pathlib import Path

import msgspec
import onnx
import pytest

from tunegate.cli.handlers.doctor_checks import check_cache, git_check, load_check, machine_checks
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.system.git.process import git_version
from tunegate.system.machine.packages import installed_version
from tunegate_cache.stores.files import FileStore


def test_a_cache_that_is_off_needs_nothing(tmp_path: Path) -> None:
    found = check_cache(CacheConfig(url="s3://b", mode="off"), root=tmp_path)
    assert (found.ok, found.detail) == (True, "off")


def test_objects_of_the_own_zone_are_counted(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "cache")
    store.write("ms1/z/main/g/a", b"")
    store.write("ms1/z/other/b", b"")
    found = check_cache(CacheConfig(url=str(tmp_path / "cache")), root=tmp_path)
    assert found.ok
    assert found.detail.endswith("1 object in zone main")


def test_devices_that_no_target_has_are_not_looked_at() -> None:
    config = Config(models=(ModelConfig(path="m.onnx"),), targets=(TargetConfig(name="cpu"),))
    assert "cuda devices" not in {each.name for each in machine_checks(config)}


def test_a_cache_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    found = check_cache(CacheConfig(url="gopher://b/p"), root=tmp_path)
    assert not found.ok
    assert "gopher://b/p" in found.detail


def test_every_run_needs_python_and_onnx_and_sees_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    checks = {each.name: each for each in machine_checks()}
    assert {"python", "onnx", "cores", "cuda devices"} <= set(checks)
    assert all(each.ok for each in checks.values())
    assert "usable" in checks["cores"].detail


@pytest.mark.parametrize(
    ("load", "machine", "usable", "free", "warns"),
    [
        (0.3, 2, 2, "1.7", False),
        (1.0, 2, 2, "1.0", False),
        (8.0, 2, 2, "0.0", True),
        (20.0, 64, 4, "4.0", False),
        (61.5, 64, 4, "2.5", True),
        (0.4, 1, 1, "0.6", False),
    ],
)
def test_a_load_that_leaves_a_target_too_few_cores_is_a_warning_and_stops_no_run(
    load: float, machine: int, usable: int, free: str, *, warns: bool
) -> None:
    found = load_check(load, machine=machine, usable=usable)
    assert (found.ok, found.warns) == (True, warns)
    assert f"{free} free" in found.detail
    assert ("quieter runner" in found.detail) == warns


@pytest.mark.parametrize("old", [(2, 30, 2), (2, 31), (), (1, 9)])
def test_a_git_that_cannot_learn_which_checkouts_are_safe_warns(old: tuple[int, ...]) -> None:
    assert git_check(old).warns
    assert "2.32" in git_check(old).detail
    assert not git_check((2, 32)).warns
    assert git_version() >= (2, 0)


def test_the_version_of_a_package_is_told_and_none_of_one_that_is_not_there() -> None:
    assert installed_version("onnx") == onnx.__version__
    assert installed_version("no-such-package") == ""


def test_an_empty_cache_is_filled_by_nobody_where_nothing_is_compiled(tmp_path: Path) -> None:
    config = CacheConfig(url=str(tmp_path / "cache"))
    assert "tunegate warm fills it" in check_cache(config, root=tmp_path).detail
    found = check_cache(config, root=tmp_path, is_compiled=False)
    assert found.detail.endswith("nothing in zone main yet; no target compiles anything")


def test_a_directory_that_no_run_could_write_is_bad_unless_only_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    config = CacheConfig(url=str(tmp_path / "file/cache"))
    found = check_cache(config, root=tmp_path)
    assert (found.ok, "file is no directory, so nothing is kept" in found.detail) == (False, True)
    assert check_cache(msgspec.structs.replace(config, mode="ro"), root=tmp_path).ok
    (tmp_path / "cache/ms1/z/main/g/0").mkdir(parents=True)
    (tmp_path / "cache/ms1/z/main/g/0/seg").write_bytes(b"")
    inside = check_cache(CacheConfig(url=str(tmp_path / "cache")), root=tmp_path)
    assert "seg is no directory, so nothing is kept" in inside.detail
    config = CacheConfig(url="/sys/cache")
    is_refused = "cannot be written by this user" in check_cache(config, root=tmp_path).detail
    assert is_refused != os.access("/sys", os.W_OK)
