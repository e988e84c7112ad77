from __future__ import annotations

from pathlib import Path

from research.experience.zone import (
    all_tasks,
    append_task,
    device_digest,
    known_layers,
)
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.s3 import S3Store

LAYER, OTHER = "a" * 16, "b" * 16
HERE = device_digest("some cpu", 1)


def test_a_listing_says_which_layers_a_device_has_measured(bucket: S3Store) -> None:
    append_task(bucket, b"one\n", device=HERE, layer=LAYER)
    append_task(bucket, b"two\n", device=device_digest("some cpu", 2), layer=OTHER)
    assert known_layers(bucket, HERE) == {LAYER}
    assert sorted(all_tasks(bucket)) == [b"one\n", b"two\n"]


def test_the_same_task_is_stored_once(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for _ in range(2):
        append_task(store, b"one\n", device=HERE, layer=LAYER)
    assert all_tasks(store) == [b"one\n"]


def test_objects_of_other_names_are_no_tasks(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.write("ms1/z/exp/tasks/notes.jsonl", b"anything\n")
    assert known_layers(store, HERE) == frozenset()
    assert all_tasks(store) == []
