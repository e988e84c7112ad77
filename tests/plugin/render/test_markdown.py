from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.support.golden import Golden
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.input_rules import DrawnInput, InputRule, Integers, OneOf
from tunegate.artifacts.verdicts import Report
from tunegate.render.headline import STATUS_WORDS
from tunegate.render.markdown import render

GITHUB_COMMENT_CHARACTERS = 65_536
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
OURS = {*TABLE, "h3", "h4", "p", "ul", "li", "code", "strong", "em", "details", "summary", "br"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_comment_reads_as_it_did_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.md", render(make_report(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_line_is_the_verdict(kind: str) -> None:
    report = make_report(kind)
    first = render(report).splitlines()[0]
    assert re.match(rf"### \S+ {STATUS_WORDS[report.verdict.status]}: \S", first)


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_fits_a_comment(kind: str) -> None:
    assert len(render(make_report(kind))) < GITHUB_COMMENT_CHARACTERS


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["slowed", "many", "hostile"]), st.integers(200, 70_000))
def test_a_comment_never_exceeds_its_limit(kind: str, limit: int) -> None:
    text = render(make_report(kind), limit_chars=limit)
    assert len(text) <= limit
    assert text.count("<details>") == text.count("</details>")


def test_hostile_names_add_no_element_to_the_page() -> None:
    page = MarkdownIt("commonmark").enable("table").render(render(make_report("hostile")))
    tags = set(re.findall(r"</?([a-zA-Z][\w-]*)", page))
    assert tags <= OURS


def test_every_row_of_every_table_has_as_many_cells_as_its_head() -> None:
    page = MarkdownIt("commonmark").enable("table").render(render(make_report("hostile")))
    for table in re.findall(r"<table>.*?</table>", page, flags=re.DOTALL):
        rows = re.findall(r"<tr>(.*?)</tr>", table, flags=re.DOTALL)
        assert len({len(re.findall(r"<t[hd]", row)) for row in rows}) == 1


def test_a_failing_report_names_the_operator_and_what_to_do_before_the_details() -> None:
    text = render(make_report("slowed"))
    shown = text[: text.index("<details>")]
    assert "| `fused_conv2d3_add2_relu2` |" in shown
    assert "was never tuned: raise budget.minutes" in shown


def test_a_report_of_many_models_shows_the_worst_first() -> None:
    rows = [line for line in render(make_report("many")).splitlines() if "| `models/" in line]
    statuses = [row.split("|")[1].split()[-1] for row in rows]
    assert statuses[:4] == ["Error", "Error", "Fail", "Fail"]
    assert set(statuses[10:]) == {"Pass"}


def _with_inputs(report: Report, *inputs: DrawnInput) -> Report:
    first, *others = report.verdict.findings
    told = (msgspec.structs.replace(first, inputs=inputs), *others)
    verdict = msgspec.structs.replace(report.verdict, findings=told)
    return msgspec.structs.replace(report, verdict=verdict)


def test_the_values_of_inputs_stand_in_a_fold_with_what_they_follow_from() -> None:
    tokens = DrawnInput(
        "ids", (1, 128), "int64", InputRule(Integers(0, 30521), "indices of the table words")
    )
    text = render(_with_inputs(make_report("slowed"), tokens))
    fold = text[text.index("<summary>Inputs</summary>") :]
    assert "| `ids`" in fold
    assert "0 to 30521 | indices of the table words |" in fold


def test_categories_of_a_hostile_model_add_no_element_to_the_page() -> None:
    evil = "<img src=x> | [a](http://b) @all\n# c"
    rule = InputRule(OneOf((evil,)), evil)
    report = _with_inputs(make_report("hostile"), DrawnInput(evil, (1,), "object", rule))
    page = MarkdownIt("commonmark").enable("table").render(render(report))
    assert {*re.findall(r"</?([a-zA-Z][\w-]*)", page)} <= OURS
