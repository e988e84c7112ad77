from __future__ import annotations

import re

import jinja2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.hostile_entries import hostile_entries
from tests.support.golden import Golden
from tests.support.history import COST, entry, history
from tests.support.html_outline import outline
from tests.support.outcome_parts import outcome
from tunegate.artifacts.history import CostSum, HistoryEntry, ModelCost
from tunegate.artifacts.outcomes import CandidateCost, TuningOutcome
from tunegate.artifacts.plans import Cost
from tunegate.report.cost_table import FilterAudit, audit, spending
from tunegate.report.costs_page import bought, hit_rate, render, weeks_plot
from tunegate.report.history_costs import cost_sums, together, week_of
from tunegate.report.history_page import render as history_page_render
from tunegate.report.html_page import page_environment
from tunegate.report.markdown import markdown_table
from tunegate.report.report_tables import spending_table

LOCATION = "s3://ml-tuning/team-vision"


def test_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    page = render(cost_sums(history()), LOCATION, 1)
    golden.check("costs.html.txt", "\n".join(outline(page).lines) + "\n")


def test_without_a_price_it_counts_time() -> None:
    cost = ModelCost(tasks=4, hits=3, seconds=600, saved_seconds=7200)
    page = render(cost_sums([entry(at, cost=cost) for at in range(3)]), LOCATION)
    assert "30 min spent in 3 runs, 30 min of it on tuning; the cache saved 6 h 00 min of" in page
    assert "minutes a week" in page
    assert "USD" not in page
    _, below = page.split('<dl class="figures">')[1].split("</dl>", 1)
    assert "set usd-per-hour of a target, or budget.usd-per-hour, in tunegate.yaml" in below


def test_runs_without_a_verdict_are_named_beside_what_they_cost() -> None:
    lines = [entry(at, status="cancelled" if at else "pass", head_ms=None) for at in range(3)]
    page = render(cost_sums(lines), LOCATION)
    assert "Of 3 runs, 2 were cancelled or ended by an error: what they spent is counted." in page
    assert "Dollars need a price" not in page


@settings(max_examples=10)  # each draws a plot
@given(st.lists(hostile_entries, min_size=1, max_size=3))
def test_no_text_of_an_entry_is_anything_but_text(entries: list[HistoryEntry]) -> None:
    tags = outline(render(cost_sums(entries), LOCATION)).tags
    assert not {"script", "img", "b", "iframe"} & tags


def test_a_rate_of_nothing_is_no_rate() -> None:
    assert (hit_rate(ModelCost()), hit_rate(ModelCost(tasks=8, hits=6))) == ("–", "75%")
    gains = [
        CostSum(name="", runs=1, cost=ModelCost(gained_ms=ms), gain_usd=usd)
        for ms, usd in ((1, None), (1, 0), (0, 1), (3, 2))
    ]
    assert [bought(row) for row in gains] == ["–", "–", "–", "1.500 ms"]


@pytest.mark.parametrize("usd", [None, 0.5])
def test_every_column_is_explained_by_its_name(usd: float | None) -> None:
    cost = ModelCost(tasks=1, seconds=60, usd=usd, gained_ms=1)
    page = render(cost_sums([entry(0, cost=cost)]), LOCATION)
    titles = set(re.findall(r"<th[^>]*>([^<]+)</th>", page)) - {"Week from", "Repository", "Model"}
    assert set(re.findall(r"<strong>(.*?)</strong>: ", page)) == titles


def test_what_was_spent_is_the_sum_of_its_parts() -> None:
    cost = ModelCost(seconds=60, gate_seconds=90, usd=0.02, gate_usd=0.03)
    page = render(cost_sums([entry(at, cost=cost) for at in range(2)]), LOCATION)
    bare = re.sub(r"</?span>", "", page)
    figures = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", bare)
    assert dict(figures[:3]) == {
        "Spent": "0.1000 USD, 5 min",
        "of it on tuning": "0.0400 USD, 2 min",
        "of it on the gate": "0.0600 USD, 3 min",
    }


def test_page_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    page = history_page_render(history(), LOCATION, 2)
    golden.check("history.html.txt", "\n".join(outline(page).lines) + "\n")


def test_the_same_entries_give_the_same_bytes() -> None:
    assert history_page_render(history(), LOCATION) == history_page_render(
        tuple(reversed(history())), LOCATION
    )


def test_a_run_that_timed_nothing_is_not_counted_among_the_latencies() -> None:
    timed, warmed = entry(1), entry(2, status="warmed", base_ms=None, head_ms=None)
    assert "Latency of 1 model in 1 run<" in history_page_render((timed, warmed), LOCATION)


def embedded(page: str) -> dict[str, list[object]]:
    (found,) = re.findall(r'<script type="application/json" id="entries">(.*?)</script>', page)
    columns = msgspec.json.decode(found)
    assert isinstance(columns, dict)
    return columns


def test_a_browser_gets_every_entry() -> None:
    columns = embedded(history_page_render(history(), LOCATION))
    assert len(columns["at"]) == len(history())
    assert columns["texts"][columns["model"][0]] == "models/old.onnx"  # type: ignore[call-overload]


@settings(max_examples=40)
@given(st.lists(hostile_entries, min_size=1, max_size=4))
def test_page_no_text_of_an_entry_is_anything_but_text(entries: list[HistoryEntry]) -> None:
    page = history_page_render(entries, LOCATION)
    assert page.count("<script") == page.count("</script>") == 4
    assert not {"img", "b", "iframe"} & outline(page).tags
    data = page[page.index('id="entries"') :].partition(">")[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029\u202e") & set(data)
    embedded(page)


def test_scripts_and_styles_are_those_that_the_policy_names() -> None:
    page = history_page_render(history(), LOCATION)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/=]{44}'", policy)) == 3
    body = page.partition("<body>")[2].partition("<script")[0]
    assert not re.search(r"<[^>]* (on\w+|style)=", body)


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


def test_a_name_that_the_template_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        shown("{{ forgotten }}")


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


def cost(**fields: object) -> CandidateCost:
    usual = {
        "stage": "quick",
        "origin": "search",
        "pick": "predicted",
        "status": "ok",
        "build_seconds": 0.2,
        "run_seconds": 0.1,
        "milliseconds": 2.0,
        "improved": False,
    }
    return CandidateCost(**(usual | fields))  # type: ignore[arg-type]  # a builder


def with_costs(*costs: CandidateCost, usd: float | None = None) -> TuningOutcome:
    made = outcome(spent=Cost(seconds=1.0, usd=usd))
    (first, *rest) = made.tasks
    tasks = [msgspec.structs.replace(first, costs=costs, search_seconds=0.3)]
    tasks += [msgspec.structs.replace(task, costs=(), search_seconds=0.0) for task in rest]
    return msgspec.structs.replace(made, tasks=tuple(tasks))


def test_every_second_is_in_one_row() -> None:
    made = with_costs(
        cost(improved=True),
        cost(),
        cost(status="compile", milliseconds=None),
        cost(stage="confirm"),
        usd=1.5,
    )
    rows = spending([made])
    assert [row.candidates for row in rows] == [1, 1, 1, 1, None]
    assert [row.seconds for row in rows] == pytest.approx([0.3] * 5)
    assert [row.share for row in rows] == pytest.approx([0.2] * 5)
    assert [row.usd for row in rows] == pytest.approx([0.3] * 5)


def test_a_rejected_candidate_near_the_best_was_rejected_wrongly() -> None:
    made = with_costs(
        cost(milliseconds=1.0),
        cost(pick="audit", milliseconds=1.01),
        cost(pick="audit", milliseconds=1.5),
        cost(pick="audit", milliseconds=None, status="timeout"),
        cost(pick="audit", stage="confirm", milliseconds=1.0),
    )
    assert audit([made]) == FilterAudit(audited=3, wrong=1)


def test_joules_are_shared_like_the_bill() -> None:
    made = msgspec.structs.replace(
        with_costs(cost()), spent=Cost(seconds=1.0, joules=60.0, energy_source="rapl")
    )
    rows = spending([made])
    assert [row.joules for row in rows] == pytest.approx([0.0, 30.0, 0.0, 0.0, 30.0])
    assert "30\xa0J" in markdown_table(spending_table(rows))
    assert "Energy" not in markdown_table(spending_table(spending([with_costs(cost())])))


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


"""The first second of 2026-06-01."""


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
