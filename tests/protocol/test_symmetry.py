from __future__ import annotations

from tests.protocol.model import Bounds, Variant, explore
from tests.protocol.symmetry import representative

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
