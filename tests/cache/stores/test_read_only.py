"""A store that cannot be taught."""

from __future__ import annotations

import pytest

from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.read_only import ReadOnlyStore
from tunegate_cache.stores.store import AccessDeniedError


def test_it_reads_and_lists_and_refuses_to_write() -> None:
    inner = MemoryStore()
    inner.write("a/1", b"x")
    store = ReadOnlyStore(inner)
    assert store.read("a/1") == b"x"
    assert list(store.names("a/")) == ["a/1"]
    with pytest.raises(AccessDeniedError):
        store.write("a/2", b"x")
    assert list(inner.names("")) == ["a/1"]
