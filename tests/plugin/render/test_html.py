from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.support.golden import Golden
from tests.support.reports import KINDS, make_report
from tunegate.render.html import render

VOID = {"meta", "br"}
QUIET = {"style", "svg"}


class Outline(HTMLParser):
    """The page's texts, each under the element that holds it; drawings and styles left out."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and not QUIET & set(self.open):
            self.lines.append(f"{'  ' * len(self.open)}{self.open[-1]}: {' '.join(data.split())}")


def outline(page: str) -> Outline:
    """Fails when the elements do not close in the order in which they opened."""
    parser = Outline()
    parser.feed(re.sub(r"<(path|use|rect)\b([^>]*)/>", r"<\1\2></\1>", page))
    assert parser.open == []
    return parser


@pytest.mark.parametrize("kind", ["slowed", "identical", "wrong-numbers", "cache-down", "hostile"])
def test_the_page_says_what_it_said_when_it_was_last_looked_at(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.html.txt", "\n".join(outline(render(make_report(kind))).lines) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_needs_nothing_from_anywhere(kind: str) -> None:
    page = render(make_report(kind))
    wanted = re.findall(r"""(?:src|href|url|@import)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert all(target.startswith("#") for target in wanted)
    assert "default-src 'none'" in page


def test_hostile_names_add_no_element() -> None:
    tags = outline(render(make_report("hostile"))).tags
    assert not tags & {"script", "a", "img", "iframe", "object"}


def test_the_same_report_gives_the_same_bytes() -> None:
    assert render(make_report("slowed")) == render(make_report("slowed"))


def test_no_two_elements_share_an_id() -> None:
    found = re.findall(r'\bid="([^"]+)"', render(make_report("many")))
    assert len(found) > 100
    assert len(found) == len(set(found))


def test_a_failing_check_shows_launches_latencies_and_waterfall() -> None:
    page = render(make_report("slowed"))
    names = re.findall(r'id="(check0-\w+|shard0-\w+)-figure_1"', page)
    assert names == ["check0-launches", "check0-latencies", "check0-waterfall", "shard0-curve"]


def test_only_the_worst_checks_are_drawn() -> None:
    assert render(make_report("many")).count('class="card check') <= 24
