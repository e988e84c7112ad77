"""Every interleaving of the protocol's model keeps the promises; without one of its rules, some
interleaving breaks them, and the checker finds it."""

import pytest

from tests.protocol.model import Bounds, Variant, explore
from tests.protocol.symmetry import representative

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


FEW = Bounds(writers=2, compactors=2, collectors=1, readers=0)


def test_worlds_that_differ_in_who_is_who_are_looked_at_once() -> None:
    all_of_them = explore(Variant(), FEW)
    once = explore(Variant(), FEW, representative=representative)
    assert once.violation == all_of_them.violation == ""
    assert all_of_them.states / 4 <= once.states <= all_of_them.states / 2


def test_what_is_broken_is_still_found() -> None:
    broken = Variant(atomic_swap=False, recovers=False)
    found = explore(broken, FEW, representative=representative)
    assert found.violation == explore(broken, FEW).violation != ""
    assert len(found.trace) == len(explore(broken, FEW).trace)
