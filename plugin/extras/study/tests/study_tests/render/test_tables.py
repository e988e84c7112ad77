from __future__ import annotations

import msgspec

from study_tests.render.studied import study
from tunegate_study.render.tables import cells_table, flips_table, varying


def test_only_axes_that_vary_have_a_column() -> None:
    assert varying(study()) == ["model", "layout", "tuning", "threads"]
    titles = [column.title for column in cells_table(study()).columns]
    assert titles[:5] == ["Model", "Layout", "Tuning", "Threads", "Time"]


def test_a_cell_without_launches_says_why_in_place_of_its_command() -> None:
    *_, last = cells_table(study()).cells()
    assert last[-1] == "no such operator"
    assert last[4] == "–"


def test_a_flip_says_what_was_ranked() -> None:
    flip = study().rank_flips[0]
    (row,) = flips_table([msgspec.structs.replace(flip, faster_percent=(5.0, 7.0))]).cells()
    assert row[:5] == ["tuning: untuned to 64", "nchw", "+5.0%", "nhwc", "+7.0%"]
