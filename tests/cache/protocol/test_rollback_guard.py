from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.compacted_place import MAIN
from tests.support.tuning_records import TARGET
from tunegate_cache.format.names import group_of
from tunegate_cache.protocol.rollback_guard import RollbackGuard

TEAM = group_of("team", TARGET)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_version_is_older_once_a_later_one_was_seen(tmp_path: Path, is_kept: bool) -> None:
    guard = RollbackGuard(tmp_path / "seen.json" if is_kept else None)
    assert [guard.is_older(MAIN, version) for version in (2, 2, 3, 2, 4)] == [
        False, False, False, True, False,
    ]  # fmt: skip
    assert not guard.is_older(TEAM, 1)


def test_another_process_of_this_machine_knows_it_too(tmp_path: Path) -> None:
    file = tmp_path / "state" / "seen.json"
    RollbackGuard(file).is_older(MAIN, 7)
    assert RollbackGuard(file).is_older(MAIN, 6)
    assert not RollbackGuard(file).is_older(MAIN, 7)


def test_a_group_that_was_restored_on_purpose_is_believed_again(tmp_path: Path) -> None:
    file = tmp_path / "seen.json"
    guard = RollbackGuard(file)
    guard.is_older(MAIN, 7)
    guard.is_older(TEAM, 7)
    guard.forget(MAIN)
    for each in (guard, RollbackGuard(file)):
        assert each.is_older(TEAM, 1)
    assert not RollbackGuard(file).is_older(MAIN, 1)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[1]", b'{"a": "b"}'])
def test_a_damaged_file_is_no_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "seen.json"
    file.write_bytes(content)
    assert not RollbackGuard(file).is_older(MAIN, 1)


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    guard = RollbackGuard(tmp_path / "file" / "seen.json")
    assert not guard.is_older(MAIN, 2)
    assert guard.is_older(MAIN, 1)
