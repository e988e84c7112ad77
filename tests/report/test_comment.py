import datetime
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace

from tests.report.waived import waived
from tests.support.golden import Golden
from tests.support.reports import KINDS, WHOLE, make_report, with_finding
from tunegate.artifacts.changes import LayerChange
from tunegate.artifacts.inputs import DrawnInput, InputRule, Integers, OneOf
from tunegate.decide.waiving import slowdowns, waiver_state
from tunegate.errors import ConfigError
from tunegate.report.comment import render
from tunegate.report.headline import STATUS_WORDS
from tunegate.review.waivers import parse_waivers
from tunegate.wording import milliseconds

GITHUB_COMMENT_CHARACTERS = 65_536
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
OURS = {
    *TABLE,
    *("h3", "h4", "p", "ul", "ol", "li", "pre", "code", "strong", "em", "details", "summary", "br"),
}
INTERNAL = re.compile(r"fused_(?!<)\w|_nchwc|Reorder(In|Out)put|\blv\d")
"""Names of compilers and runtimes for things that have another name in the model."""


@pytest.mark.parametrize("kind", WHOLE)
def test_the_comment_reads_as_it_did_when_it_was_last_reviewed(kind: str, golden: Golden) -> None:
    golden.check(f"{kind}.md", render(make_report(kind)))


def test_what_is_waived_shows_its_layers_and_where_its_waiver_is() -> None:
    text = render(waived())
    assert text.startswith("### ☑️ Waived: +12.4% latency of `models/squeezenet.onnx` on `cpu`")
    assert "waived up to +17% until 2026-12-25: the wider kernel is worth it" in text
    assert "the waiver is in tunegate-waivers.yaml at the tip of the branch" in text
    row = "| `fire5/expand3x3` | 1.208 ms | 1.320 ms | +0.1120 ms (18%) | TVM, tuned now |"
    assert row in text.replace("\N{NO-BREAK SPACE}", " ")


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
    assert set(re.findall(r"</?([a-zA-Z][\w-]*)", page)) <= OURS


def tables(text: str) -> list[list[str]]:
    """The rows of each table, drawn as GitHub draws them."""
    page = MarkdownIt("commonmark").enable("table").render(text)
    found = re.findall(r"<table>.*?</table>", page, flags=re.DOTALL)
    return [re.findall(r"<tr>(.*?)</tr>", each, flags=re.DOTALL) for each in found]


@pytest.mark.parametrize("kind", KINDS)
def test_no_table_has_more_than_five_columns_and_each_row_has_all_of_them(kind: str) -> None:
    drawn = tables(render(make_report(kind)))
    assert drawn
    for rows in drawn:
        (columns,) = {len(re.findall(r"<t[hd]", row)) for row in rows}
        assert 2 <= columns <= 5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hostile"])
def test_no_internal_name_stands_in_the_text(kind: str) -> None:
    assert not INTERNAL.search(render(make_report(kind)))


def test_what_passed_without_moving_is_counted_and_folded() -> None:
    text = render(make_report("many"))
    shown = text[: text.index("<details>")]
    assert "| ✅ Pass |" not in shown
    assert "122 more checks passed." in shown
    assert "<summary>122 more checks</summary>" in text


def test_three_hundred_failing_models_are_all_named_with_their_numbers() -> None:
    """Only the models of the first table have their slower parts listed."""
    report = make_report("slowed")
    (finding,) = report.verdict.findings
    names = [f"models/family_{n % 7}/deep/encoder_{n:03}.onnx" for n in range(300)]
    failing = tuple(replace(finding, model=name) for name in names)
    text = render(replace(report, verdict=replace(report.verdict, findings=failing)))
    assert len(text) < 60_001
    assert [name for name in names if f"| `{name}`" not in text] == []
    assert text.count("What got slower in") == text.partition("####")[0].count("| ❌ Fail |") == 20


def test_one_latency_is_told_with_one_number() -> None:
    """The times of choosing a runtime, and of the reference, are other measurements."""
    report = make_report("slowed")
    (finding,) = report.verdict.findings
    shown = render(report).partition("<details>")[0].replace("\u00a0", " ")
    assert shown.count(milliseconds(finding.head_ms)) == 1
    assert milliseconds(finding.reference_ms) not in shown


def test_the_waiver_to_paste_is_one_that_counts_once_it_is_filled_in() -> None:
    block = render(make_report("slowed")).split("```yaml\n")[1].split("```")[0]
    today = datetime.date(2026, 11, 25)
    with pytest.raises(ConfigError, match="issue and reason still have the offer's placeholder"):
        parse_waivers(block, "tunegate-waivers.yaml", today)
    filled = re.sub("<.*>", "https://example.com/1", block)
    (waiver,) = parse_waivers(filled, "tunegate-waivers.yaml", today)
    (comparison,) = make_report("slowed").comparisons
    assert waiver_state(waiver, slowdowns(comparison), today) == "covers"


def test_a_hostile_name_stays_inside_the_block_to_paste() -> None:
    block = render(make_report("hostile")).split("```yaml\n")[1].split("\n```")[0]
    (waiver,) = yaml.safe_load(block)["waivers"]
    assert waiver["model"] == make_report("hostile").verdict.findings[0].model


def test_the_values_of_inputs_stand_in_a_fold_with_what_they_follow_from() -> None:
    tokens = DrawnInput(
        "ids", (1, 128), "int64", InputRule(Integers(0, 30521), "indices of the table words")
    )
    text = render(with_finding(make_report("slowed"), inputs=(tokens,)))
    fold = text[text.index("<summary>Inputs</summary>") :]
    assert "| `ids`" in fold
    assert "0 to 30521 | indices of the table words |" in fold


def test_categories_of_a_hostile_model_add_no_element_to_the_page() -> None:
    evil = "<img src=x> | [a](http://b) @all\n# c"
    rule = InputRule(OneOf((evil,)), evil)
    drawn = DrawnInput(evil, (1,), "object", rule)
    report = with_finding(make_report("hostile"), inputs=(drawn,))
    page = MarkdownIt("commonmark").enable("table").render(render(report))
    assert {*re.findall(r"</?([a-zA-Z][\w-]*)", page)} <= OURS


def test_the_layers_that_the_change_touches_are_told_for_a_model_that_did_not_pass() -> None:
    report = make_report("slowed")
    layers = (LayerChange("mix`|\n", "Conv: weights 16x3x1x1 → 16x3x5x5"),)
    changed = [replace(model, layers=layers, more_layers=2) for model in report.changes.models]
    changes = replace(report.changes, models=tuple(changed))
    text = render(replace(report, changes=changes))
    told = text.partition("#### What changed in ")[2].partition("####")[0]
    assert "Conv: weights 16x3x1x1 → 16x3x5x5\n- … and 2 more layers." in told
    assert "mix`|\n" not in told
    passed = make_report("measured")
    assert "What changed in" not in render(replace(passed, changes=changes))
