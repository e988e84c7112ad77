from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.object_rules import OBJECT_RULES
from tunegate_cache.stores.store import ObjectStore


class Forgetting(MemoryStore):
    def read(self, name: str) -> bytes:
        return b"" if name in self._objects else super().read(name)


class Inventing(MemoryStore):
    def read(self, name: str) -> bytes:
        return self._objects.get(name, b"")


class Flat(MemoryStore):
    def names(self, prefix: str) -> Sequence[str]:
        return [name for name in super().names(prefix) if "/" not in name.removeprefix(prefix)]


class Whole(MemoryStore):
    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self.read(name)


class Refusing(MemoryStore):
    def write(self, name: str, body: bytes) -> None:
        if name in self._objects:
            raise TypeError(name)
        super().write(name, body)


class Overwriting(MemoryStore):
    def write(self, name: str, body: bytes) -> None:
        self._objects[name] = body


class OverwritingWhenRaced(MemoryStore):
    """Takes writes of several threads for one after the other."""

    def write(self, name: str, body: bytes) -> None:
        if threading.current_thread() is threading.main_thread():
            super().write(name, body)
        else:
            self._objects[name] = body


def broken(store: ObjectStore) -> list[str]:
    """The rules that the store does not keep: it says so, or cannot be asked at all."""
    found = []
    for number, rule in enumerate(OBJECT_RULES):
        try:
            problem = rule.problem(store, f"place/{number}")
        except TypeError:
            problem = "cannot be asked"
        if problem:
            found.append(rule.name)
    return found


def test_a_store_in_memory_keeps_every_rule() -> None:
    assert broken(MemoryStore()) == []


@pytest.mark.parametrize(
    ("store", "rule"),
    [
        (Forgetting(), "reads what was written"),
        (Inventing(), "says what is missing"),
        (Flat(), "lists what was written"),
        (Whole(), "reads parts of objects"),
        (Refusing(), "takes an equal write for success"),
        (Overwriting(), "refuses to overwrite (If-None-Match)"),
        (OverwritingWhenRaced(), "lets one of racing writers win"),
    ],
)
def test_a_store_that_breaks_a_rule_is_found_out(store: ObjectStore, rule: str) -> None:
    assert rule in broken(store)


def test_the_cache_cannot_do_without_reading_and_writing() -> None:
    optional = {rule.name for rule in OBJECT_RULES if not rule.is_needed}
    assert optional == {"refuses to overwrite (If-None-Match)", "lets one of racing writers win"}
    assert all(rule.advice for rule in OBJECT_RULES if not rule.is_needed)
