from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.golden import Golden
from tests.support.history import COST, entry, history
from tests.support.html_outline import outline

import tunegate_history
from history_tests.hostile_entries import hostile_entries
from tunegate.artifacts.history import CostSum, HistoryEntry, ModelCost
from tunegate.artifacts.measurements import Interval
from tunegate.report.history import together
from tunegate_history import history_page
from tunegate_history.costs_page import (
    cost_sums,
    gain_per_dollar,
    hit_rate,
    render,
    week_of,
    weeks_plot,
)
from tunegate_history.history_page import (
    chained_ms,
    csv_lines,
    entry_columns,
    history_scripts,
    history_style,
    script_json,
)

GOLDEN = Path(__file__).parents[1] / "golden"
LOCATION = "s3://ml-tuning/team-vision"


def test_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    page = render(history(), LOCATION, 1)
    golden.check("costs.html.txt", "\n".join(outline(page).lines) + "\n", GOLDEN)


def test_without_a_price_it_counts_time() -> None:
    cost = ModelCost(tasks=4, hits=3, seconds=600, saved_seconds=7200)
    page = render([entry(at, cost=cost) for at in range(3)], LOCATION)
    assert "30 min spent in 3 runs, 30 min of it on tuning; the cache saved 6 h 00 min of" in page
    assert "minutes a week" in page
    assert "USD" not in page
    _, below = page.split('<dl class="figures">')[1].split("</dl>", 1)
    assert "set usd-per-hour of a target, or budget.usd-per-hour, in tunegate.yaml" in below


def test_runs_without_a_verdict_are_named_beside_what_they_cost() -> None:
    lines = [entry(at, status="cancelled" if at else "pass", head_ms=None) for at in range(3)]
    page = render(lines, LOCATION)
    assert "Of 3 runs, 2 were cancelled or ended by an error: what they spent is counted." in page
    assert "Dollars need a price" not in page


@settings(max_examples=10)  # each draws a plot
@given(st.lists(hostile_entries, min_size=1, max_size=3))
def test_no_text_of_an_entry_is_anything_but_text(entries: list[HistoryEntry]) -> None:
    tags = outline(render(entries, LOCATION)).tags
    assert not {"script", "img", "b", "iframe"} & tags


def changed(percent: float) -> Interval:
    return Interval(low=percent, center=percent, high=percent)


def chain(*runs: tuple[float, float | None, str]) -> list[float | None]:
    """Of runs with a latency, a change and the name of a commit."""
    found = [(head, None if percent is None else changed(percent), c) for head, percent, c in runs]
    return chained_ms(
        [
            entry(at, head_ms=head, change_percent=change, commit=commit)
            for at, (head, change, commit) in enumerate(found)
        ]
    )


def test_the_load_of_a_machine_is_no_step_of_the_line_and_a_slower_head_is() -> None:
    assert chain((5.0, 0.0, "a"), (9.0, 0.0, "b"), (5.5, 10.0, "c")) == pytest.approx([5, 5, 5.5])


def test_a_commit_that_runs_again_and_a_run_without_a_change_leave_the_line() -> None:
    runs = ((5.0, 0.0, "a"), (5.5, 10.0, "b"), (5.5, 10.0, "b"), (9.0, None, "c"))
    assert chain(*runs) == pytest.approx([5, 5.5, 5.5, 5.5])


def test_a_head_beside_the_default_branch_moves_no_line() -> None:
    aside = entry(1, head_ms=7.0, change=7, change_percent=changed(20))
    last = entry(2, head_ms=8.0, change_percent=changed(0))
    assert chained_ms([entry(0, head_ms=5.0), aside, last]) == pytest.approx([5, 6, 5])


def test_a_new_model_begins_its_line_and_no_change_leads_out_of_the_numbers() -> None:
    new = entry(1, head_ms=2.0, status="new")
    absurd = entry(2, head_ms=3.0, change_percent=changed(1e300))
    assert chained_ms([entry(0, head_ms=5.0), new, absurd]) == [5.0, 2.0, 3.0]


def test_a_rate_of_nothing_is_no_rate() -> None:
    assert (hit_rate(ModelCost()), hit_rate(ModelCost(tasks=8, hits=6))) == ("–", "75%")
    gains = [
        CostSum(name="", runs=1, cost=ModelCost(gained_ms=ms), gain_usd=usd)
        for ms, usd in ((1, None), (1, 0), (0, 1), (3, 2))
    ]
    assert [gain_per_dollar(row) for row in gains] == ["–", "–", "–", "1.500 ms"]


@pytest.mark.parametrize("usd", [None, 0.5])
def test_every_column_is_explained_by_its_name(usd: float | None) -> None:
    cost = ModelCost(tasks=1, seconds=60, usd=usd, gained_ms=1)
    page = render([entry(0, cost=cost)], LOCATION)
    titles = set(re.findall(r"<th[^>]*>([^<]+)</th>", page)) - {"Week from", "Repository", "Model"}
    assert set(re.findall(r"<strong>(.*?)</strong>: ", page)) == titles


def test_what_was_spent_is_the_sum_of_its_parts() -> None:
    cost = ModelCost(seconds=60, gate_seconds=90, usd=0.02, gate_usd=0.03)
    page = render([entry(at, cost=cost) for at in range(2)], LOCATION)
    bare = re.sub(r"</?span>", "", page)
    figures = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", bare)
    assert dict(figures[:3]) == {
        "Spent": "0.1000 USD, 5 min",
        "of it on tuning": "0.0400 USD, 2 min",
        "of it on the gate": "0.0600 USD, 3 min",
    }


def test_page_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    page = history_page.render(history(), LOCATION, 2)
    golden.check("history.html.txt", "\n".join(outline(page).lines) + "\n", GOLDEN)


def test_the_same_entries_give_the_same_bytes() -> None:
    assert history_page.render(history(), LOCATION) == history_page.render(
        tuple(reversed(history())), LOCATION
    )


def test_a_run_that_timed_nothing_is_not_counted_among_the_latencies() -> None:
    timed, warmed = entry(1), entry(2, status="warmed", base_ms=None, head_ms=None)
    assert "Latency of 1 model in 1 run<" in history_page.render((timed, warmed), LOCATION)


def embedded(page: str) -> dict[str, list[object]]:
    (found,) = re.findall(r'<script type="application/json" id="entries">(.*?)</script>', page)
    columns = msgspec.json.decode(found)
    assert isinstance(columns, dict)
    return columns


def test_a_browser_gets_every_entry() -> None:
    columns = embedded(history_page.render(history(), LOCATION))
    assert len(columns["at"]) == len(history())
    assert columns["texts"][columns["model"][0]] == "models/old.onnx"  # type: ignore[call-overload]


@settings(max_examples=40)
@given(st.lists(hostile_entries, min_size=1, max_size=4))
def test_page_no_text_of_an_entry_is_anything_but_text(entries: list[HistoryEntry]) -> None:
    page = history_page.render(entries, LOCATION)
    assert page.count("<script") == page.count("</script>") == 4
    assert not {"img", "b", "iframe"} & outline(page).tags
    data = page[page.index('id="entries"') :].partition(">")[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029\u202e") & set(data)
    embedded(page)


def test_scripts_and_styles_are_those_that_the_policy_names() -> None:
    page = history_page.render(history(), LOCATION)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/=]{44}'", policy)) == 3
    body = page.partition("<body>")[2].partition("<script")[0]
    assert not re.search(r"<[^>]* (on\w+|style)=", body)


def week(number: int, **cost: float) -> CostSum:
    return CostSum(name=f"2026-W{number}", runs=1, cost=ModelCost(**cost))


def test_dollars_are_drawn_where_they_are_known_and_minutes_elsewhere() -> None:
    assert "USD a week" in weeks_plot([week(1, usd=2.0, seconds=60)])
    assert "minutes a week" in weeks_plot([week(1, seconds=60)])
    assert weeks_plot([]) == ""


def test_a_year_at_most_is_drawn_and_its_labels_do_not_touch() -> None:
    drawn = weeks_plot([week(number, usd=1.0) for number in range(80)])
    assert "in 52 weeks" in drawn
    assert drawn.count("2026-W") <= 5


amounts = st.floats(0, 1e6)
costs = st.builds(
    ModelCost,
    tasks=amounts,
    hits=amounts,
    seconds=amounts,
    usd=st.none() | amounts,
    saved_seconds=amounts,
)
entries = st.builds(
    lambda at, model, repository, cost: entry(at, model=model, repository=repository, cost=cost),
    st.integers(-400, 400),
    st.sampled_from("abc"),
    st.sampled_from("xy"),
    st.none() | costs,
)


@given(st.lists(entries))
def test_weeks_repositories_and_models_each_add_up_to_all(found: list[HistoryEntry]) -> None:
    summed = cost_sums(found)
    for rows in (summed.weeks, summed.repositories, summed.models):
        total = together([row.cost for row in rows])
        for name in ("tasks", "hits", "seconds", "saved_seconds"):
            assert getattr(total, name) == pytest.approx(getattr(summed.total.cost, name))
        assert (total.usd is None) == (summed.total.cost.usd is None)
    assert summed.uncounted == sum(each.cost is None for each in found)


def test_two_models_of_one_run_are_one_run() -> None:
    summed = cost_sums([entry(1), entry(1, model="b.onnx"), entry(2)])
    assert summed.total.runs == 2
    assert [row.runs for row in summed.models] == [2, 1]


def test_what_was_not_let_through_costs_and_gains_nothing() -> None:
    cost = ModelCost(seconds=2.0, gained_ms=1.0)
    stati = ("pass", "new", "waived", "warmed", "fail", "error", "cancelled")
    summed = cost_sums([entry(at, status=each, cost=cost) for at, each in enumerate(stati)])
    assert (summed.total.cost.seconds, summed.total.cost.gained_ms) == (14.0, 1.0)


def test_the_most_that_one_run_gained_is_told_with_what_it_cost() -> None:
    """The gains of two runs are of two heads, and don't add."""
    costs = [ModelCost(usd=2.0, gained_ms=1.0), ModelCost(usd=0.5, gained_ms=3.0)]
    (row,) = cost_sums([entry(at, cost=each) for at, each in enumerate(costs)]).models
    assert (row.cost.gained_ms, row.gain_usd, row.cost.usd) == (3.0, 0.5, 2.5)


def week_at(at: int) -> str:
    return week_of(msgspec.structs.replace(entry(0), at=at))


def test_the_last_second_of_all_calendars_has_a_week() -> None:
    assert week_at(253_402_300_799) == "9999-12-27"
    assert week_at(0) == "1969-12-29"


def test_warming_costs_and_what_has_no_cost_does_not() -> None:
    summed = cost_sums(history())
    assert summed.uncounted == 1
    counted = len(history()) - 1
    assert summed.total.cost.seconds == pytest.approx(counted * COST.seconds)


# The columns that a browser gets, and the history as CSV.


def column(columns: dict[str, object], name: str) -> list[int]:
    return cast("list[int]", columns[name])


def test_a_text_that_comes_again_is_kept_once() -> None:
    columns = entry_columns([entry(at) for at in range(50)])
    texts = column(columns, "texts")
    assert len(set(column(columns, "model"))) == 1
    assert texts.count("models/squeezenet.onnx") == 1  # type: ignore[arg-type]


def test_what_is_unknown_is_null_and_no_zero() -> None:
    columns = entry_columns([entry(0, head_ms=None, change_percent=None, change=None)])
    assert [columns[name] for name in ("head", "low", "high", "change")] == [[None]] * 4


def test_heads_of_requests_and_of_other_branches_are_beside_the_line() -> None:
    """Lines of earlier versions have the number of a request, and nothing of other branches."""
    columns = entry_columns([entry(0), entry(1, change=7), entry(2, is_aside=True)])
    assert columns["aside"] == [0, 1, 1]


def test_the_same_versions_in_another_order_are_one_toolchain() -> None:
    pairs = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1"}
    columns = entry_columns([entry(at, versions=each) for at, each in enumerate(pairs)])
    assert columns["toolchain"] == [0, 0, 1]


def test_json_in_a_script_is_the_same_value() -> None:
    value = {"</script>": ["<!--", "\u2028", "a & b"]}
    written = script_json(value)
    assert msgspec.json.decode(written) == value
    assert not set("<>&\u2028") & set(written)


# A spreadsheet that opens the file computes nothing, and every cell is where it belongs.


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_file_is_as_it_was_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("history.csv", csv_lines(history()[-4:]).replace("\r\n", "\n"), GOLDEN)


@settings(max_examples=40)
@given(st.lists(hostile_entries, max_size=4))
@example([entry(0, model="=cmd|'/C calc'!A0"), entry(0, device=" =1", release="\t@SUM(1)")])
def test_no_text_is_a_formula_and_no_line_breaks(entries: list[HistoryEntry]) -> None:
    text = csv_lines(entries)
    found = rows(text)
    assert len(found) == len(entries) == text.count("\r\n") - 1
    for row in found:
        assert None not in row
        for name in ("model", "target", "device", "runtime", "repository", "release", "versions"):
            assert row[name].strip()[:1] not in set("=+-@|%\t\r\n")
            assert not set("\x00\x1b\u202e") & set(row[name])


# The scripts and styles of the page: allowed by hash, and uPlot's are npm's, byte for byte.

FOLDER = Path(tunegate_history.__file__).parent / "vendor" / "uplot"
"""The SHA-256 of files of uplot-1.6.32.tgz, whose integrity in the registry is
sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==."""


def test_the_hash_is_that_of_the_very_text() -> None:
    for each in (*history_scripts(), history_style()):
        digest = base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode()
        assert each.source == f"'sha256-{digest}'"


def test_no_script_ends_its_element() -> None:
    for each in history_scripts():
        assert "</script" not in each.text.lower()
        assert "<!--" not in each.text
    assert "</style" not in history_style().text.lower()


def test_it_needs_no_permission_that_a_page_withholds() -> None:
    script = (FOLDER / "uPlot.iife.min.js").read_text(encoding="utf-8")
    assert "1.6.32" in script[:100]
    for word in ("eval(", "new Function", "innerHTML", "fetch(", "XMLHttpRequest", "</script"):
        assert word not in script
