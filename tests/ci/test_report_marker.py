from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.comments import report_marker


@given(st.text())
def test_a_marker_is_one_comment_whatever_the_name_is(name: str) -> None:
    marker = report_marker(name)
    assert marker.count("-->") == 1
    assert marker.endswith(" -->")
    assert "\n" not in marker


def test_reports_of_two_directories_have_two_markers() -> None:
    assert report_marker(".tunegate") == "<!-- tunegate:report .tunegate -->"
    assert report_marker("a") != report_marker("b")
