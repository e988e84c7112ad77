from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.house.sources import ROOT

from tunegate.report.escape import code, prose
from tunegate_ci_hosts.bitbucket.comment_text import bitbucket_marker, comment_text

GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.md"))
OPENING = re.compile(r"(?<!\\)[`*\[\]|](?!\u200b)")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_no_report_shows_a_tag_or_a_reference(path: Path) -> None:
    shown = comment_text(path.read_text())
    assert not re.search(r"</?(details|summary|br|code)>|&#\d+;", shown)


def test_what_folds_is_shown_under_its_title() -> None:
    assert comment_text("<details><summary>Tasks (10)</summary>\n\nx\n\n</details>") == (
        "**Tasks (10)**\n\nx\n\n"
    )


def test_code_and_addresses_stay_as_they_are() -> None:
    for text in ("`a&#64;b <br> @x`", "[run](https://bitbucket.org/a#b)"):
        assert comment_text(text) == text


@given(st.text(max_size=60))
def test_no_message_begins_markup_or_mentions_anybody(message: str) -> None:
    shown = comment_text(prose(message))
    assert not OPENING.search(shown)
    assert not re.search(r"[@#]\w", shown)
    assert not re.search(r"<[a-zA-Z/!]", shown)


@given(st.text(min_size=1, max_size=60))
def test_no_name_leaves_its_place(name: str) -> None:
    shown = comment_text(code(name))
    if not re.fullmatch(r"`[^`\n]*`", shown):
        assert not OPENING.search(shown)
        assert not re.search(r"[@#]\w", shown)


def test_the_marker_is_a_link_that_nobody_uses() -> None:
    assert bitbucket_marker("out)\n# x") == "[//]: # (tunegate:report outx)"
