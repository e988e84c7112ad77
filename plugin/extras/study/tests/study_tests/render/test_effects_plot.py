from __future__ import annotations

import msgspec

from study_tests.render.studied import study
from tunegate_study.render.effects_plot import effects_plot


def test_each_effect_is_named_on_its_line() -> None:
    drawn = str(effects_plot(study()))
    assert drawn.startswith("<svg")
    assert all(name in drawn for name in ("layout nhwc", "tuning 64", "threads 2"))


def test_nothing_is_drawn_of_no_effects() -> None:
    assert effects_plot(msgspec.structs.replace(study(), main_effects=())) == ""
