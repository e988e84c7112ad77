from __future__ import annotations

from pathlib import Path

import msgspec
from tests.tune.test_prior import experience

from research.experience.zone import append_task, device_digest
from research.experience.zone_tasks import measured_layers, read_tasks, write_task
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store

LAYER = "0123456789abcdef"
TASK = msgspec.structs.replace(
    experience(), kind="product", layer=LAYER, workload="w", device="some cpu", threads=1
)


def test_a_task_comes_back_and_its_layer_is_known_on_its_device(bucket: S3Store) -> None:
    assert write_task(bucket, TASK) == ""
    assert read_tasks(bucket) == ((TASK,), 0)
    assert measured_layers(bucket, "some cpu", 1) == {LAYER}
    assert measured_layers(bucket, "some cpu", 2) == frozenset()


def test_lines_of_others_that_do_not_hold_together_are_counted(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    write_task(store, TASK)
    hostile = b'[[[[\n{"name":1}\n' + msgspec.json.encode(
        msgspec.structs.replace(TASK, rows=((7, 1.0, ()),))
    )
    append_task(store, hostile, device=device_digest("some cpu", 1), layer="f" * 16)
    assert read_tasks(store) == ((TASK,), 3)


def test_a_task_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    long = msgspec.structs.replace(TASK, rows=TASK.rows * 1000)
    assert "at most" in write_task(FileStore(tmp_path), long)
    (tmp_path / "file").write_text("")
    assert write_task(FileStore(tmp_path / "file"), TASK)
