from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cli.handlers.cache_shell import Shell
from tests.support.history import COST, entry
from tests.support.tuning_records import TARGET
from tunegate.cli.handlers.cache_stats import target_names
from tunegate.config import CacheConfig
from tunegate.system.cache.history_log import write_history
from tunegate_cache.format.names import group_of
from tunegate_cache.maintenance.summary import GroupSummary
from tunegate_cache.stores.files import FileStore


def test_what_the_cache_holds_is_counted_by_zone(shell: Shell) -> None:
    assert shell.cache("stats")["contents"] == []
    shell.publish("a", "b", "c")
    shell.cache("compact")
    shell.cache("gc")
    shell.publish("d", zone="dev/me")
    mine, main = shell.cache("stats")["contents"]
    assert (main["version"], main["segments"], main["archived"]) == (1, 0, 3)
    assert (main["records"], main["workloads"], main["corrupt"]) == (3, 3, 0)
    assert (mine["zone"], mine["segments"], mine["records"]) == ("dev/me", 1, 1)
    shown = shell.shown("stats")
    assert "dev/me" in shown
    assert "segments: files of records that wait for cache compact" in shown


KEY = group_of("", TARGET).target
ROW = GroupSummary(
    zone="main",
    target=KEY,
    version=0,
    segments=1,
    archived=0,
    records=1,
    workloads=1,
    devices=("AMD EPYC 7B13",),
    failures=0,
    refused=0,
    corrupt=0,
    size_bytes=1,
)


def test_the_hit_rate_and_what_was_saved_are_those_of_the_latest_runs(
    shell: Shell, tmp_path: Path
) -> None:
    assert "no run that wrote to zone main has looked anything up yet" in shell.shown("stats")
    lines = [entry(at, target_key=KEY) for at in range(3)]
    store, kept = FileStore(Path(shell.url)), FileStore(tmp_path)
    assert write_history(store, CacheConfig(url=shell.url), lines, 1, kept) == ""
    shell.publish("a")
    shown = " ".join(shell.shown("stats").split())
    assert "the latest 3 runs that wrote to zone main: hit rate 75% of 30 look-ups" in shown
    assert "12 min (0.2400 USD) of tuning saved" in shown
    found = shell.cache("stats")
    assert found["used"]["cost"]["hits"] == pytest.approx(3 * COST.hits)
    assert found["targets"][KEY].startswith("cpu: ")


def test_a_target_has_the_name_that_runs_gave_it_or_that_of_its_devices() -> None:
    assert target_names([ROW], [entry(0, target_key=KEY)]) == {KEY: "cpu: AMD EPYC 7B13"}
    assert target_names([ROW], []) == {KEY: "AMD EPYC 7B13"}
    assert target_names([msgspec.structs.replace(ROW, devices=())], []) == {KEY: KEY[:8]}


def test_two_targets_of_one_name_are_told_apart() -> None:
    other = msgspec.structs.replace(ROW, target="f" * 16)
    names = target_names([ROW, other], [])
    assert names == {KEY: f"AMD EPYC 7B13 {KEY[:8]}", "f" * 16: "AMD EPYC 7B13 ffffffff"}
    called = target_names([ROW, other], [entry(0, target_key=KEY)])
    assert called[KEY] == f"cpu: AMD EPYC 7B13 {KEY[:8]}"
    assert called["f" * 16] == names["f" * 16]


def test_a_name_that_lies_in_the_store_cannot_move_the_cursor() -> None:
    row = msgspec.structs.replace(ROW, devices=("\x1b[2Jcpu",))
    assert "\x1b" not in target_names([row], [])[KEY]
