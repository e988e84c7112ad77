from __future__ import annotations

from tunegate.measure.bench_messages import Sides, other


def test_a_side_has_what_was_given_for_it() -> None:
    sides = Sides(base="old", head="new")
    assert (sides.of("base"), sides.of("head")) == ("old", "new")
    assert sides.each(len) == Sides(3, 3)


def test_the_other_side_of_the_other_is_the_same() -> None:
    assert (other("base"), other(other("base"))) == ("head", "base")
