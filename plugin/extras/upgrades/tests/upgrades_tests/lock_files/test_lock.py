"""The pins that are read of a lock file."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.lock import (
    LockFile,
    LockFileError,
    PinnedPackage,
    as_lock,
    normal_name,
)

DIGEST = f"sha256:{'0' * 64}"


def pin(name: str = "a", version: str = "1", **fields: object) -> PinnedPackage:
    return PinnedPackage(name=name, version=version, where="r.txt:1", **fields)  # type: ignore[arg-type]


def test_names_are_written_as_indexes_write_them() -> None:
    assert normal_name("Typing__Extensions.x") == "typing-extensions-x"


def test_a_package_in_two_versions_is_refused_by_name() -> None:
    found = as_lock("r.txt", [pin(), pin(version="2"), pin("b")], {})
    assert found.refused == {"a": "r.txt:1: a is pinned to 1 too"}
    assert set(found.pins) == {"b"}


def test_the_place_in_the_file_decides_nothing() -> None:
    one = LockFile(path="r.txt", pins={"a": pin()})
    other = LockFile(
        path="s.txt", pins={"a": PinnedPackage(name="a", version="1", where="s.txt:9")}
    )
    assert one.decides() == other.decides()
    assert one.decides() != LockFile(path="r.txt", pins={"a": pin(hashes=(DIGEST,))}).decides()


@pytest.mark.parametrize(
    "odd",
    [
        pin("a\n--index-url http://127.0.0.1/"),
        pin(version="1.0\n--index-url http://127.0.0.1/"),
        pin(version="1.0 @ file:///tmp/x.whl"),
        pin(version="--pre"),
        pin(hashes=(f"{DIGEST}\nevil==1",)),
        pin(hashes=("md5:00",)),
    ],
)
def test_what_would_become_another_line_for_an_installer_is_refused(odd: PinnedPackage) -> None:
    with pytest.raises(LockFileError, match="no name, version or hash"):
        as_lock("r.txt", [odd], {})
