from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.support.waivers import make_waiver
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.verdicts import Waiver, waiver_of
from tunegate.review.gate_rules import merged_waivers

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


LONG = "models/m.onnx@long"


def test_a_narrow_waiver_of_a_profile_that_is_removed_leaves_no_wider_one_in_its_place() -> None:
    narrow = make_waiver(model=LONG, ceiling_percent=2.0)
    found = merged_waivers([USUAL, narrow], [USUAL], "w.yaml")
    assert ceiling(found.counting, LONG) == 2.0
    assert ceiling(found.pending, LONG) == 8.0
    (told,) = found.changes
    assert (told.model, told.effect, told.counts) == (LONG, "loosened", "once merged")


def test_a_model_whose_waiver_is_split_into_its_profiles_keeps_them() -> None:
    split = [make_waiver(model=f"models/m.onnx@{name}") for name in ("long", "short")]
    found = merged_waivers([USUAL], split, "w.yaml")
    assert (ceiling(found.counting, LONG), ceiling(found.counting, "models/m.onnx")) == (8.0, None)
    assert found.pending == ()


def of_some_cells() -> st.SearchStrategy[list[Waiver]]:
    """Waivers of the model and of its profiles, at most one of each."""
    names = ("models/m.onnx", LONG, "models/m.onnx@short")
    ceilings = st.fixed_dictionaries({}, optional=dict.fromkeys(names, st.integers(1, 9)))
    return ceilings.map(
        lambda found: [make_waiver(model=m, ceiling_percent=float(c)) for m, c in found.items()]
    )


@given(of_some_cells(), of_some_cells())
def test_nothing_counts_that_either_side_does_not_allow(
    base: list[Waiver], head: list[Waiver]
) -> None:
    counting = merged_waivers(base, head, "w.yaml").counting
    for name in ("models/m.onnx", LONG, "models/m.onnx@short", "models/m.onnx@other"):
        both = [ceiling(base, name), ceiling(head, name)]
        allowed = None if None in both else min(each for each in both if each is not None)
        assert ceiling(counting, name) == allowed


def ceiling(waivers: list[Waiver] | tuple[Waiver, ...], model: str) -> float | None:
    found = waiver_of(waivers, Cell(model=model, target="cpu"))
    return None if found is None else found.ceiling_percent
