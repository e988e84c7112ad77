from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.host_files import log_line
from tunegate.ci.protocol import Annotation


@given(st.text())
def test_an_annotation_is_one_printable_line_whatever_is_in_it(text: str) -> None:
    line = log_line(Annotation(level="error", title=text, text=text, file=text, line=3))
    assert line.isprintable()


def test_the_place_is_named_where_there_is_one() -> None:
    told = Annotation(level="warning", title="tunegate", text="bad", file="a.yaml", line=3)
    assert log_line(told) == "tunegate: warning: a.yaml:3: bad"
    assert log_line(Annotation(level="notice", title="t", text="bad")) == "t: notice: bad"
