from __future__ import annotations

from tests.support.golden import Golden

from study_tests.render.studied import GOLDEN, study
from tunegate_study.render.markdown import render


def test_the_study_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("study.md", render(study()), GOLDEN)


def test_names_cannot_make_structure() -> None:
    text = render(study("a|b\n# <b>@all</b>"))
    assert "<b>" not in text
    assert "\n# " not in text.removeprefix("# ")
    assert "@all" not in text
