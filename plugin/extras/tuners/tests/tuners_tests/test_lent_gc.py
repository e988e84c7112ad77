from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.reference_page import command_section

from tunegate.cli.main import main
from tunegate_cache.stores.files import FileStore
from tunegate_tuners.command import COMMAND
from tunegate_tuners.lent_gc import unneeded_objects
from tunegate_tuners.lent_objects import LentObject

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


def _object(age_days: float, *, key: str = "k", size: int = 1, zone: str = "main") -> LentObject:
    return LentObject(
        zone=zone,
        tool="helion",
        key=key,
        file="f",
        milliseconds=int(NOW_MS - age_days * DAY_MS),
        size=size,
        digest="0" * 64,
    )


def _unneeded(*found: LentObject, max_bytes: int = 100) -> list[LentObject]:
    return unneeded_objects(found, now_ms=NOW_MS, days=90, max_bytes=max_bytes)


def test_what_was_superseded_goes_after_an_hour() -> None:
    old, new, newest = _object(3), _object(2), _object(0.001)
    assert _unneeded(new, old) == [old]
    assert _unneeded(newest, new, old) == [old]


def test_what_is_old_or_from_the_future_goes() -> None:
    old, future = _object(91), _object(-1, key="future")
    assert _unneeded(old, future, _object(1, key="other")) == [future, old]


def test_the_oldest_go_where_a_zone_is_over_its_quota() -> None:
    first, second, third = (
        _object(age, key=key, size=40) for age, key in ((3, "a"), (2, "b"), (1, "c"))
    )
    elsewhere = _object(3, zone="rel", size=40)
    assert _unneeded(first, second, third, elsewhere) == [first]


def test_the_command_counts_and_deletes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = FileStore(tmp_path / "bucket")
    old = _object(20_000)
    store.write(old.name, b"x")
    store.write("ms1/z/main/g/0/other", b"not a lent object")
    command = ["lent-gc", "--json", "--cache-url", str(tmp_path / "bucket")]
    assert main([*command, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"][0]["deleted"] == 1
    assert store.read(old.name)
    assert main(command) == 0
    assert store.names("") == ["ms1/z/main/g/0/other"]


def test_the_page_of_the_extra_lists_every_option() -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    shared = "](../../../docs/commands.md#options-"
    assert command_section(COMMAND).strip("\n").replace("](#options-", shared) in page
