import re
from functools import cache

import pytest

from tests.report.budgeted import BUDGETED
from tests.support.golden import Golden
from tests.support.html_outline import outline
from tests.support.reports import KINDS, WHOLE, make_report, with_finding
from tunegate.report import table
from tunegate.report.html import render
from tunegate.report.html_page import html_table, page_environment


@cache
def page_of(kind: str) -> str:
    """The page of one situation. Its plots take a tenth of a second each."""
    return render(make_report(kind))


@pytest.mark.parametrize("kind", WHOLE)
def test_the_page_says_what_it_said_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.html.txt", "\n".join(outline(page_of(kind)).lines) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_needs_nothing_from_anywhere(kind: str) -> None:
    page = page_of(kind)
    wanted = re.findall(r"""(?:src|href|url|@import)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert all(target.startswith("#") for target in wanted)
    assert "default-src 'none'" in page


def test_hostile_names_add_no_element() -> None:
    assert not outline(page_of("hostile")).tags & {"script", "a", "img", "iframe", "object"}


def test_a_failing_check_shows_launches_latencies_and_waterfall() -> None:
    shown = re.findall(r"<svg[^>]*><title>(\w+ \w+)", page_of("slowed"))
    assert shown == ["Effect of", "Difference by", "Latency of", "Estimated latency"]


def test_candidates_are_drawn_by_latency_and_error_and_told_in_a_table() -> None:
    page = render(with_finding(make_report("identical"), runtimes=BUDGETED))
    assert "<title>Latency by error; on the Pareto front: " in page
    lines = [line.strip() for line in outline(page).lines]
    columns = lines[lines.index("summary: Candidates (6)") :]
    heads = [line.removeprefix("th: ") for line in columns if line.startswith("th: ")]
    assert heads[:7] == ["No.", "Candidate", "Time", "From", "To", "Error", "Why"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_plot_says_what_to_see(kind: str) -> None:
    page = page_of(kind)
    captions = re.findall(r"<figure><figcaption><strong>[^<]+</strong> ([^<]*)</figcaption>", page)
    assert len(captions) == page.count("<figure>")
    assert all(each.endswith((".", ".”")) for each in captions)


def test_only_the_worst_checks_are_drawn_and_what_passed_without_moving_is_folded() -> None:
    page = page_of("many")
    assert page.count('class="card check') <= 24
    shown = page.partition("Measurements of other checks")[0]
    assert 'class="card check tone-fail"' in shown
    assert 'class="card check tone-pass"' not in shown


def drawn(cell: table.CellContent) -> str:
    columns: tuple[table.Column[table.CellContent], ...] = (
        table.text_column("first", lambda _: "first"),
        table.text_column("second", lambda row: row),
    )
    return str(html_table(table.ReportTable(columns, [cell]), 20, "title"))


def shown(template: str, *, longest: int = 100, **values: object) -> str:
    return page_environment(longest_text=longest).from_string(template).render(**values)


def test_a_text_stays_a_text() -> None:
    page = shown("<p>{{ name }}</p><i title='{{ name }}'>", name="<img src=x onerror='a()'>")
    assert "<img" not in page
    assert "onerror='" not in page


def test_what_cannot_be_seen_is_shown() -> None:
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown(
        "{{ name }}", name="a\N{RIGHT-TO-LEFT OVERRIDE}b"
    )


def test_a_long_text_is_cut_in_the_middle() -> None:
    page = shown("{{ name }}", longest=20, name="begin" + "x" * 100 + "end")
    assert len(page) <= 20
    assert page.startswith("begin")
    assert page.endswith("end")
