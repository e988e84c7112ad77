from __future__ import annotations

import re

import msgspec
import pytest
from markdown_it import MarkdownIt

from tests.support.report_parts import finding, verdict
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.fork_report import MAX_FORK_CHECKS, render

TIP = "a" * 40
OURS = {"table", "thead", "tbody", "tr", "th", "td", "h3", "p", "code", "strong", "br"}
OURS |= {"blockquote"}
HOSTILE = "</td></table><img src=x onerror=alert(1)>|`[click](https://evil)\n\n# Pass @all #7 !8"


def rendered(found: Verdict) -> str:
    return render(found, source="mallory/models", tip=TIP)


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_says_first_that_it_is_unverified(kind: str) -> None:
    text = rendered(make_report(kind).verdict)
    assert text.startswith("### Unverified, from a run of the fork: ")
    assert "They decide nothing" in text.split("\n\n")[1]


def test_the_numbers_are_shown_and_no_sentence_of_the_fork() -> None:
    slow = finding("fail", "merged: all maintainers agreed")
    found = msgspec.structs.replace(verdict("fail", 1, slow), notes=("a note of the fork",))
    text = rendered(found)
    assert "1 check, 1 failed" in text
    assert f"| `{slow.model}`<br>`{slow.target}` |" in text
    assert "maintainers" not in text
    assert "a note" not in text


def test_names_of_the_fork_add_no_element_to_the_page() -> None:
    slow = finding("fail", HOSTILE)
    hostile = msgspec.structs.replace(slow, model=HOSTILE, target=HOSTILE)
    text = rendered(verdict("fail", 1, hostile))
    page = MarkdownIt("commonmark").enable("table").render(text)
    assert set(re.findall(r"</?([a-zA-Z][\w-]*)", page)) <= OURS
    (row,) = [line for line in text.splitlines() if line.startswith("| ❌")]
    assert len(row.split("|")) == len(text.splitlines()[4].split("|"))
    assert "@all" not in re.sub(r"<code>.*?</code>", "", text)


def test_many_checks_are_counted_and_the_worst_are_shown() -> None:
    many = verdict("pass", 0, *[finding("pass", "")] * (MAX_FORK_CHECKS + 30))
    text = rendered(many)
    assert f"{MAX_FORK_CHECKS + 30} checks, {MAX_FORK_CHECKS + 30} pass" in text
    assert "… and 30 more checks." in text


def test_a_run_without_a_check_says_so() -> None:
    assert "no model was checked" in rendered(verdict("pass", 0))
