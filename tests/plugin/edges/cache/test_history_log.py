from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.history import history
from tests.support.servers.black_hole import black_hole
from tunegate.config import CacheConfig
from tunegate.edges.cache.history_log import read_history, write_history
from tunegate_cache.maintenance.history import append_history
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store

CONFIG = CacheConfig(url="cache", zone="main")


def test_what_is_written_comes_back_in_order(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    lines = history()
    assert write_history(store, CONFIG, lines[10:], 2) == ""
    assert write_history(store, CONFIG, lines[:10], 1) == ""
    found = read_history(store, "main", 10)
    assert set(found) == set(lines)
    assert [line.at for line in found] == sorted(line.at for line in lines)


@pytest.mark.parametrize("mode", ["ro", "off"])
def test_a_run_that_may_not_write_does_not(tmp_path: Path, mode: str) -> None:
    config = CacheConfig(url="cache", zone="main", mode=mode)  # type: ignore[arg-type]
    assert write_history(FileStore(tmp_path), config, history(), 1) == ""
    assert read_history(FileStore(tmp_path), "main", 10) == []


def test_lines_that_are_none_of_ours_are_left_out(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    lies = b'{}\nnull\n{"schema": 2}\n' + b"[" * 100_000 + b'\n{"at": 1e999}\n\xff\n'
    append_history(store, "main", lies, milliseconds=1)
    write_history(store, CONFIG, history()[:1], 2)
    assert len(read_history(store, "main", 10)) == 1


def test_a_store_that_hangs_costs_three_seconds_and_a_sentence(credentials: None) -> None:
    with black_hole() as url:
        store = S3Store("b", "p", endpoint_url=url, region="us-east-1")
        started = time.monotonic()
        said = write_history(store, CONFIG, history()[:1], 1)
    assert "was not written" in said
    assert time.monotonic() - started < 20  # the server is silent all the while
