from __future__ import annotations

import msgspec

from study_tests.render.studied import study
from tunegate_study.render.sections import study_headline, study_sections


def test_a_section_without_rows_is_left_out() -> None:
    whole = study()
    assert [each.title for each in study_sections(whole)] == [
        "Axes",
        "Main effects",
        "Pairs that do not add up",
        "Flips of rank",
        "Fewer operations, more time",
        "Pareto fronts",
        "Left out",
        "Cells",
    ]
    none = msgspec.structs.replace(whole, rank_flips=(), slower_with_less=(), fronts=())
    assert len(study_sections(none)) == 5


def test_a_fraction_says_how_many_of_how_many() -> None:
    whole = study()
    design = msgspec.structs.replace(whole.design, kind="fraction", chosen=8)
    fitted = tuple(msgspec.structs.replace(each, settings=0) for each in whole.main_effects)
    told = msgspec.structs.replace(whole, design=design, main_effects=fitted)
    axes, effects, *_ = study_sections(told)
    assert axes.text.startswith("8 of 16 possible cells, a D-optimal fraction.")
    assert "by a fit to all cells" in effects.text


def test_more_flips_than_are_shown_are_counted() -> None:
    whole = study()
    many = msgspec.structs.replace(whole, rank_flips=whole.rank_flips * 20)
    flips = next(each for each in study_sections(many) if each.title == "Flips of rank")
    assert len(flips.table.rows) == 30
    assert flips.text.endswith("10 more are in study.json.")
    assert study_headline(many).endswith("40 flips of rank")
