from __future__ import annotations

import datetime

from tests.support.waivers import make_waiver
from tunegate.policy.waivers import merged_waivers

LATER = datetime.date(2026, 9, 1)
USUAL = make_waiver()


def test_a_waiver_that_the_head_lowers_or_shortens_counts_as_lowered() -> None:
    lower = make_waiver(ceiling_percent=4.0, expires=datetime.date(2026, 7, 2))
    found = merged_waivers([USUAL], [lower], "w.yaml")
    assert found.counting == (lower,)
    assert (found.pending, [told.effect for told in found.changes]) == ((), ["tightened"])


def test_a_waiver_that_the_head_removes_counts_no_more() -> None:
    found = merged_waivers([USUAL], [], "w.yaml")
    assert (found.counting, found.pending) == ((), ())
    (told,) = found.changes
    assert (told.old, told.new) == ("up to +8% until 2026-07-31", "no waiver")


def test_a_waiver_that_the_head_raises_stays_as_it_is_until_that_is_merged() -> None:
    for wider in (make_waiver(ceiling_percent=90.0), make_waiver(expires=LATER)):
        found = merged_waivers([USUAL], [wider], "w.yaml")
        assert (found.counting, found.pending) == ((USUAL,), (wider,))
        assert [(told.effect, told.counts) for told in found.changes] == [
            ("loosened", "once merged")
        ]


def test_higher_but_shorter_is_the_narrower_of_both() -> None:
    mixed = make_waiver(ceiling_percent=90.0, expires=datetime.date(2026, 7, 2))
    (counting,) = merged_waivers([USUAL], [mixed], "w.yaml").counting
    assert (counting.ceiling_percent, counting.expires) == (8.0, mixed.expires)


def test_other_words_for_the_same_waiver_are_no_change() -> None:
    assert merged_waivers([USUAL], [make_waiver(reason="as said")], "w.yaml").changes == ()
