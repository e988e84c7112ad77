"""Packages of a lock file are installed, with the real uv and an index on loopback."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.servers.package_index import Index, serving_packages, small_wheel

from tunegate_upgrades.environments.locked_packages import needed_pins
from tunegate_upgrades.environments.uv import Uv, UvError
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError, PinnedPackage
from tunegate_upgrades.lock_files.requirements_file import read_requirements


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """`fast` 1 and 2 need `arrays`, and 3 needs what the index does not have."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version, need in (("1.0", "arrays>=1"), ("2.0", "arrays>=1"), ("3.0", "nowhere")):
        small_wheel(wheels, "fast", version=version, needs=[need])
    for version in ("1.0", "2.0"):
        small_wheel(wheels, "arrays", version=version)
    with serving_packages(wheels) as server:
        yield server


def needed(text: str, index: Index, tmp_path: Path, *more: str) -> dict[str, str]:
    lock = read_requirements("r.txt", text, lambda path: path)
    uv = Uv((index.address,), tmp_path / "uv")
    pins = needed_pins(lock, ("fast",), uv, (index.address, *more))
    return {pin.name: pin.version for pin in pins}


def test_only_what_the_runtime_needs_is_taken(index: Index, tmp_path: Path) -> None:
    text = "fast==1.0\narrays==1.0\nunrelated==9\nother @ https://e.example/x.whl\n"
    assert needed(text, index, tmp_path) == {"fast": "1.0", "arrays": "1.0"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fast==1.0\n", r"arrays is needed and not pinned"),
        ("fast==1.0\narrays>=1\n", r"r\.txt:2: arrays is not pinned to one version"),
        ("fast==1.0\narrays @ git+https://e.example/a\n", r"arrays is taken from git\+https"),
        ("arrays==1.0\n", r"r\.txt pins no fast"),
        ("-i https://e.example\nfast==1.0\narrays==1.0\n", r"is from https://e\.example, which is"),
        ("-f ./wheels\nfast==1.0\narrays==1.0\n", r"is from --find-links \./wheels, which is"),
        (
            f"fast==1.0 --hash=sha256:{'0' * 64}\narrays==1.0\n",
            r"arrays has no hash, and others have",
        ),
    ],
)
def test_what_is_no_pinned_wheel_of_an_index_that_counts_is_named(
    text: str, why: str, index: Index, tmp_path: Path
) -> None:
    with pytest.raises(LockFileError, match=why):
        needed(text, index, tmp_path)


def test_an_index_of_the_configuration_may_stand_in_the_file(index: Index, tmp_path: Path) -> None:
    text = f"--extra-index-url {index.address}/\nfast==1.0\narrays==1.0\n"
    assert set(needed(text, index, tmp_path)) == {"fast", "arrays"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fast==9.0\narrays==1.0\n", "fast==9.0"),
        ("fast==1.0\narrays==0.5\n", "arrays"),
        ("fast==3.0\narrays==1.0\n", "nowhere"),
    ],
)
def test_what_cannot_be_had_names_the_package(
    text: str, why: str, index: Index, tmp_path: Path
) -> None:
    with pytest.raises(UvError, match=why):
        needed(text, index, tmp_path)


def test_a_file_that_is_another_than_its_hash_is_not_installed(
    index: Index, tmp_path: Path
) -> None:
    wheel = index.wheels / "fast-1.0-py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    uv = Uv((index.address,), tmp_path / "uv")
    uv.resolve({"arrays": "1.0"}, {})
    requirements = tmp_path / "r.txt"
    requirements.write_text(f"fast==1.0 --hash=sha256:{digest[::-1]}\n")
    with pytest.raises(UvError, match=r"[Hh]ash"):
        uv.install(requirements, tmp_path / "env", is_hashed=True)


def test_a_lock_without_the_runtime_asks_no_index(tmp_path: Path) -> None:
    lock = LockFile(path="r.txt", pins={"other": PinnedPackage(name="other", version="1")})
    with pytest.raises(LockFileError, match="pins no fast"):
        needed_pins(lock, ("fast",), Uv(("http://127.0.0.1:1",), tmp_path), ())
