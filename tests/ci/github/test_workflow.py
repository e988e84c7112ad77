from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.github.host import command_of, commands_stopped, cut, output
from tunegate.ci.protocol import Annotation


@given(st.text())
def test_an_annotation_is_one_line_whatever_is_in_it(text: str) -> None:
    line = command_of(Annotation(level="error", title=text, text=text, file=text, line=1))
    assert "\n" not in line
    assert "\r" not in line
    assert line.startswith("::error ")


@given(st.text())
def test_an_output_ends_at_its_own_delimiter_only(value: str) -> None:
    lines = output("name", value).split("\n")
    delimiter = lines[0].removeprefix("name<<")
    assert lines[-2] == delimiter
    assert "\n".join(lines[1:-2]) == value


@given(st.text(max_size=500), st.integers(100, 400))
def test_a_summary_is_cut_to_its_bytes_on_a_character(text: str, most: int) -> None:
    assert len(cut(text, most).encode()) <= max(most, min(len(text.encode()), most))


def test_commands_are_stopped_by_a_token_nobody_knows_and_start_again() -> None:
    stream = io.StringIO()
    with commands_stopped(stream):
        stream.write("::error::planted\n")
    first, _, last = stream.getvalue().strip().split("\n")
    token = first.removeprefix("::stop-commands::")
    assert last == f"::{token}::"
    assert len(token) >= 32
