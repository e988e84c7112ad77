from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.hostile_entries import hostile_entries
from tests.support.golden import Golden
from tests.support.history import entry, history
from tests.support.html_outline import outline
from tunegate.artifacts.history import CostSum, HistoryEntry, ModelCost
from tunegate.report.costs_page import bought, hit_rate, render
from tunegate.report.history_costs import cost_sums

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


def test_a_history_without_costs_is_a_page_too() -> None:
    page = render(cost_sums([entry(0, cost=None)]), LOCATION)
    assert "1 line of earlier versions without a cost not counted." in page


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
