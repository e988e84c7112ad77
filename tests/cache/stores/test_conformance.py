from __future__ import annotations

from collections.abc import Callable

import pytest

from tunegate_cache.stores.conformance import probe
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import MaintainedStore


class Overwriting(MemoryStore):
    """A store like servers that ignore If-None-Match."""

    def write(self, name: str, body: bytes) -> None:
        self._objects[name] = body


class Unconditional(MemoryStore):
    """A store like servers that ignore If-Match."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._objects[name] = body


class Partless(MemoryStore):
    """A store behind a proxy that cuts out the wrong part."""

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)


def failed(store: MaintainedStore) -> set[str]:
    return {finding.name for finding in probe(store) if not finding.ok}


def test_a_store_that_keeps_its_promises_is_found_to_do_so(bucket: S3Store) -> None:
    for store in (MemoryStore(), bucket):
        assert failed(store) == set()
        assert list(store.names("ms1/probe/")) == []


@pytest.mark.parametrize(
    ("make", "broken", "advice"),
    [
        (Overwriting, "refuses to overwrite (If-None-Match)", "forbid it by policy"),
        (Unconditional, "compares before it swaps (If-Match)", "one scheduled job"),
    ],
)
def test_a_store_without_conditions_works_and_says_what_to_mind(
    make: Callable[[], MaintainedStore], broken: str, advice: str
) -> None:
    found = {finding.name: finding for finding in probe(make())}
    assert not found[broken].ok
    assert not found[broken].needed
    assert advice in found[broken].detail


def test_what_the_cache_cannot_do_without_is_needed() -> None:
    (broken,) = (finding for finding in probe(Partless()) if not finding.ok)
    assert (broken.name, broken.needed) == ("reads parts of objects", True)
