import threading
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import msgspec
import pytest

from tests.support.history import history
from tests.support.servers.black_hole import black_hole
from tunegate.config import CacheConfig
from tunegate.system.cache.history_log import ReadHistory, read_history, write_history
from tunegate_cache.maintenance.history import write_lines
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import StoreTimedOutError

NOW = 1_900_000_000
CONFIG = CacheConfig(url="cache", zone="main")


def test_what_is_written_comes_back_in_order(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "cache")
    lines = history()
    kept = FileStore(tmp_path / "kept")
    assert write_history(store, CONFIG, lines[10:], 2, kept) == ""
    assert write_history(store, CONFIG, lines[:10], 1, kept) == ""
    assert kept.names("") == []
    found = read_history(store, "main", 10, NOW).entries
    assert sorted(found, key=str) == sorted(lines, key=str)
    assert [line.at for line in found] == sorted(line.at for line in lines)


@pytest.mark.parametrize("mode", ["ro", "off"])
def test_a_run_that_may_not_write_does_not(tmp_path: Path, mode: str) -> None:
    config = CacheConfig(url="cache", zone="main", mode=mode)  # type: ignore[arg-type]
    store = FileStore(tmp_path)
    assert write_history(store, config, history(), 1, store) == ""
    assert read_history(FileStore(tmp_path), "main", 10, NOW) == ReadHistory(entries=())


def test_lines_that_are_none_of_ours_are_left_out(tmp_path: Path) -> None:
    """Nor are lines dated in the future: the last ones for ever."""
    store = FileStore(tmp_path)
    late = msgspec.structs.replace(history()[0], at=NOW + 86401)
    write_history(store, CONFIG, [late], 3, FileStore(tmp_path / "kept"))
    lies = (
        b'{}\nnull\n{"schema": 2}\n'
        + b"[" * 100_000
        + b'\n{"at": 1e999}\n\xff\n{"model": "\xe1"}\n'
    )
    write_lines(store, START, lies)
    write_history(store, CONFIG, history()[:1], 2, FileStore(tmp_path / "kept"))
    found = read_history(store, "main", 10, NOW)
    assert (len(found.entries), found.refused) == (1, 8)


START = "ms1/z/main/history/0000000000001"
OLD = (
    b'{"schema":1,"at":1780000000,"commit":"b81d3e5f7a9c1b3d5f7e9a1c3b5d7f9e1a3c5b7d",'
    b'"release":"v1.2.0","model":"models/squeezenet.onnx","target":"cpu","device":"AMD EPYC 7B13",'
    b'"runtime":"tvm","status":"pass","base_ms":8.0,"head_ms":8.05,'
    b'"change_percent":{"low":-0.4,"center":0.1,"high":0.5},"trials":64}'
)
"""A line as the first version wrote it."""


def test_a_line_of_the_first_version_is_still_read(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    write_lines(store, START, OLD + b"\n")
    (entry,) = read_history(store, "main", 10, NOW).entries
    assert (entry.model, entry.head_ms, entry.trials) == ("models/squeezenet.onnx", 8.05, 64)
    assert (entry.repository, entry.change, entry.run_url, entry.cost) == ("", None, "", None)


def test_the_first_version_reads_what_it_knows_of_a_line_of_today() -> None:
    written = msgspec.json.decode(msgspec.json.encode(history()[0]))
    assert written.keys() >= msgspec.json.decode(OLD).keys()
    assert written["schema"] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_url": "javascript:alert(1)"},
        {"run_url": "https://user:secret@ci.example/1"},
        {"run_url": "https://ci.example/1\n"},
        {"run_url": 'https://ci.example/"onclick="x'},
        {"head_ms": -1.0},
        {"head_ms": 1e300},
        {"at": -1},
        {"at": 2**60},
        {"model": "x" * 2000},
        {"change": -3},
        {"status": "great"},
        {"cost": {"usd": -5.0}},
        {"versions": {str(at): "1" for at in range(100)}},
    ],
    ids=str,
)
def test_a_line_beyond_the_limits_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    store = FileStore(tmp_path)
    line = msgspec.json.encode({**msgspec.json.decode(OLD), **wrong})
    write_lines(store, START, line + b"\n" + OLD + b"\n")
    found = read_history(store, "main", 10, NOW)
    assert (len(found.entries), found.refused) == (1, 1)


class Hanging(FileStore):
    """It has two lines: one times out, and the other never comes."""

    def __init__(self, never: threading.Event) -> None:
        super().__init__(Path())
        self._never, self._asked = never, count()

    def names(self, prefix: str) -> Sequence[str]:
        return [f"{prefix}{n:013d}-{'0' * 64}.jsonl" for n in range(2)]

    def read_part(self, name: str, start: int, size: int) -> bytes:
        if next(self._asked):
            self._never.wait()
        raise StoreTimedOutError("late")


def test_a_store_that_hangs_costs_three_seconds_and_a_sentence_and_no_line(
    credentials: None, tmp_path: Path
) -> None:
    kept = FileStore(tmp_path / "kept")
    with black_hole() as url:
        store = S3Store("b", "p", endpoint_url=url, region="us-east-1")
        started = time.monotonic()
        said = write_history(store, CONFIG, history()[:1], 1, kept)
    assert said.endswith(
        "was not written (no answer in 3 s); the next run on this machine writes it"
    )
    assert time.monotonic() - started < 60  # the server is silent all the while
    with pytest.raises(StoreTimedOutError, match="late"):
        read_history(Hanging(threading.Event()), "main", 10, NOW)
    answering = FileStore(tmp_path / "cache")
    assert write_history(answering, CONFIG, history()[1:2], 2, kept) == ""
    assert len(read_history(answering, "main", 10, NOW).entries) == 2
    assert kept.names("") == []
