from __future__ import annotations

import re

import msgspec
import pytest

from tests.plugin.render.candidates.budgeted import BUDGETED
from tests.support.golden import Golden
from tests.support.html_outline import outline
from tests.support.reports import KINDS, make_report
from tunegate.render.html import render


@pytest.mark.parametrize(
    "kind", ["slowed", "identical", "wrong-numbers", "cache-down", "hostile", "loosened"]
)
def test_the_page_says_what_it_said_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
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


def test_candidates_are_drawn_by_latency_and_error_and_told_in_a_table(golden: Golden) -> None:
    report = make_report("identical")
    (finding,) = report.verdict.findings
    finding = msgspec.structs.replace(finding, runtimes=BUDGETED)
    verdict = msgspec.structs.replace(report.verdict, findings=(finding,))
    page = render(msgspec.structs.replace(report, verdict=verdict))
    assert 'id="check0-candidates-figure_1"' in page
    golden.check("candidates.html.txt", "\n".join(outline(page).lines) + "\n")


def test_only_the_worst_checks_are_drawn() -> None:
    assert render(make_report("many")).count('class="card check') <= 24
