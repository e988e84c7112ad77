from __future__ import annotations

import pytest

from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.pointer_rules import POINTER_RULES
from tunegate_cache.stores.store import MaintainedStore, PointerMovedError, StoreUnavailableError


class Unconditional(MemoryStore):
    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._objects[name] = body


class Strict(MemoryStore):
    """Refuses to move a pointer to what it says already."""

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        if self._objects.get(name) == body:
            self._objects[name] = b"moved twice"
            return
        super().move_pointer(name, body, expected)


class Undeletable(MemoryStore):
    def delete(self, name: str) -> None:
        raise StoreUnavailableError("no right to delete")


class Lingering(MemoryStore):
    def delete(self, name: str) -> None:
        pass


def broken(store: MaintainedStore) -> dict[str, str]:
    found = {}
    for number, rule in enumerate(POINTER_RULES):
        try:
            found[rule.name] = rule.problem(store, f"place/{number}")
        except PointerMovedError:
            found[rule.name] = "cannot be asked"
    return {name: problem for name, problem in found.items() if problem}


def test_a_store_in_memory_keeps_every_rule() -> None:
    assert broken(MemoryStore()) == {}


def test_a_store_that_ignores_conditions_swaps_what_others_have_swapped() -> None:
    found = broken(Unconditional())
    assert "not there any more" in found["compares before it swaps (If-Match)"]
    assert "moved it from the same version" in found["lets one of racing swaps win"]
    assert "takes an equal swap for success" not in found


def test_a_store_that_takes_an_equal_swap_for_another_is_found_out() -> None:
    assert "takes an equal swap for success" in broken(Strict())


@pytest.mark.parametrize(
    ("store", "said"),
    [(Undeletable(), "no right to delete"), (Lingering(), "a deleted object is still there")],
)
def test_a_store_that_deletes_nothing_says_why(store: MaintainedStore, said: str) -> None:
    assert broken(store)["deletes"] == said


def test_only_an_equal_swap_is_needed() -> None:
    assert [rule.name for rule in POINTER_RULES if rule.is_needed] == [
        "takes an equal swap for success"
    ]
    assert all(rule.advice for rule in POINTER_RULES if not rule.is_needed)
