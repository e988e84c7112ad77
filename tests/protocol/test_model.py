"""Every interleaving of the protocol's model keeps the promises; without one of its rules, some
interleaving breaks them, and the checker finds it."""

from __future__ import annotations

import pytest

from tests.protocol.model import Bounds, Variant, explore

SMALL = Bounds(writers=2, compactors=2, rounds=1)
NOBODY_READS = SMALL._replace(readers=0)
ONLY_WRITERS = Bounds(writers=2, compactors=0, collectors=0, readers=0)


def test_the_protocol_keeps_its_promises() -> None:
    """Two compactors beside all that are in benchmarks/cache/protocol_model.py."""
    found = explore(Variant(), SMALL._replace(compactors=1))
    assert (found.violation, found.trace) == ("", ())
    assert found.states > 10_000


def test_nothing_is_lost_where_conditions_do_not_work() -> None:
    """A reader may miss something for a while there, so none is watched."""
    found = explore(Variant(atomic_swap=False), NOBODY_READS)
    assert (found.violation, found.trace) == ("", ())


def test_one_object_is_right_where_conditions_work() -> None:
    assert explore(Variant(stores="one object"), ONLY_WRITERS).violation == ""


BROKEN = {
    "one object, written back without a condition": (
        Variant(stores="one object, unchecked"),
        ONLY_WRITERS,
        "is lost",
    ),
    "one object, on a store whose conditions do not work": (
        Variant(stores="one object", atomic_swap=False),
        ONLY_WRITERS,
        "is lost",
    ),
    "HEAD is read before segments are listed": (
        Variant(reads="head, list"),
        SMALL,
        "a reader misses",
    ),
    "a compaction deletes what it gathered": (Variant(collects="inputs"), SMALL, "a reader misses"),
    "orphans are not recovered": (
        Variant(atomic_swap=False, recovers=False),
        NOBODY_READS,
        "is lost",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_protocol_without_one_of_its_rules_breaks_a_promise(name: str) -> None:
    variant, bounds, expected = BROKEN[name]
    found = explore(variant, bounds)
    assert expected in found.violation
    assert len(found.trace) > 2
