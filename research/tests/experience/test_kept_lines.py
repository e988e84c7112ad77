from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from research.experience.kept_lines import FILE, KeptLines
from research.experience.lines import read_experience
from research.experience.zone_tasks import read_tasks
from research.tests.experience.test_zone_tasks import TASK
from tunegate.errors import EnvironmentUnfitError
from tunegate_cache.stores.files import FileStore


def test_what_is_written_is_counted_by_kind(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    kept = KeptLines(store, "cache")
    kept(TASK)
    kept(msgspec.structs.replace(TASK, kind="grouped", workload="v", layer="f" * 16))
    kept.save(tmp_path / "out")
    assert (kept.tasks, dict(kept.kinds)) == (2, {"product": 1, "grouped": 1})
    assert kept.rows == 2 * len(TASK.rows)
    assert len(read_tasks(store).tasks) == 2
    assert not (tmp_path / "out").exists()


def test_what_the_cache_does_not_take_is_a_file_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = KeptLines(FileStore(tmp_path / "file"), "cache")
    kept(TASK)
    assert kept.has_failed
    with pytest.raises(EnvironmentUnfitError, match="1 task could not be written to the cache"):
        kept.save(tmp_path / "out")
    lines = (tmp_path / "out" / FILE).read_bytes().splitlines()
    assert read_experience(lines) == ((TASK,), 0)
