from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.protocol import Annotation
from tunegate_ci_hosts.azure.logging_commands import (
    is_plain,
    issue_command,
    logging_commands_broken,
    summary_command,
    variable_command,
)

COMMAND = re.compile(r"##(vso)?\[", re.IGNORECASE)


def test_an_issue_stands_at_its_line() -> None:
    annotation = Annotation(level="error", title="tunegate", text="slow", file="a.yaml", line=4)
    assert issue_command(annotation) == (
        "##vso[task.logissue type=error;sourcepath=a.yaml;linenumber=4;]tunegate: slow"
    )
    notice = Annotation(level="notice", title="t", text="x")
    assert issue_command(notice) == "##vso[task.logissue type=warning;]t: x"


def test_a_variable_and_a_summary_are_commands() -> None:
    assert variable_command("verdict", "pass") == (
        "##vso[task.setvariable variable=TUNEGATE_VERDICT;isOutput=true;]pass"
    )
    assert summary_command(Path("/a/ci-summary.md")) == "##vso[task.uploadsummary]/a/ci-summary.md"


@given(st.text(alphabet=st.sampled_from("#vsoVSO[]%;\r\n\x1b\u2028x "), max_size=80))
def test_no_text_is_a_second_command_or_ends_a_property(text: str) -> None:
    said = issue_command(Annotation(level="error", title=text, text=text, file=text, line=1))
    assert len(COMMAND.findall(said)) == 1
    assert len(said.splitlines()) == 1
    head, _, _ = said.partition("]")
    assert head.count(";") in {1, 3}


@given(st.lists(st.text(alphabet=st.sampled_from("#vso[]x\n"), max_size=8), max_size=8))
def test_nothing_that_is_printed_meanwhile_is_a_command(pieces: list[str]) -> None:
    out, error = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, error
    try:
        with logging_commands_broken():
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stderr.write(piece)
        assert (sys.stdout, sys.stderr) == (out, error)
    finally:
        sys.stdout, sys.stderr = before
    for stream in (out, error):
        assert not COMMAND.search(stream.getvalue())
        assert stream.getvalue().replace("\u200b", "") == "".join(pieces)


@pytest.mark.parametrize("value", ["$(x)", "a;b", "a]b", "a\nb", "é", "%AZP25", "`x`", "##vso[x]"])
def test_a_value_that_something_could_read_is_not_plain(value: str) -> None:
    assert not is_plain(value)
    assert is_plain(".tunegate/report.html")
