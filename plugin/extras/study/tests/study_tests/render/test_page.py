from __future__ import annotations

from tests.support.golden import Golden
from tests.support.html_outline import outline

from study_tests.render.studied import GOLDEN, study
from tunegate_study.render.page import render


def test_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("study.html.txt", "\n".join(outline(render(study())).lines) + "\n", GOLDEN)


def test_the_page_is_the_same_each_time_and_needs_nothing_else() -> None:
    page = render(study())
    assert page == render(study())
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_names_cannot_make_structure() -> None:
    assert "<b>" not in render(study("<b>bold</b>"))
