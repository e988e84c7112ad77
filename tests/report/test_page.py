from __future__ import annotations

import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.hostile_entries import hostile_entries
from tests.support.golden import Golden
from tests.support.history import entry, history
from tests.support.html_outline import outline
from tunegate.artifacts.history import HistoryEntry
from tunegate.report.history_page import render

LOCATION = "s3://ml-tuning/team-vision"


def test_the_page_says_what_it_said_when_it_was_last_reviewed(golden: Golden) -> None:
    page = render(history(), LOCATION, 2)
    golden.check("history.html.txt", "\n".join(outline(page).lines) + "\n")


def test_the_same_entries_give_the_same_bytes() -> None:
    assert render(history(), LOCATION) == render(tuple(reversed(history())), LOCATION)


def test_a_run_that_timed_nothing_is_not_counted_among_the_latencies() -> None:
    timed, warmed = entry(1), entry(2, status="warmed", base_ms=None, head_ms=None)
    assert "Latency of 1 model in 1 run<" in render((timed, warmed), LOCATION)


def embedded(page: str) -> dict[str, list[object]]:
    (found,) = re.findall(r'<script type="application/json" id="entries">(.*?)</script>', page)
    columns = msgspec.json.decode(found)
    assert isinstance(columns, dict)
    return columns


def test_a_browser_gets_every_entry() -> None:
    columns = embedded(render(history(), LOCATION))
    assert len(columns["at"]) == len(history())
    assert columns["texts"][columns["model"][0]] == "models/old.onnx"  # type: ignore[call-overload]


@settings(max_examples=40)
@given(st.lists(hostile_entries, min_size=1, max_size=4))
def test_no_text_of_an_entry_is_anything_but_text(entries: list[HistoryEntry]) -> None:
    page = render(entries, LOCATION)
    assert page.count("<script") == page.count("</script>") == 4
    assert not {"img", "b", "iframe"} & outline(page).tags
    data = page[page.index('id="entries"') :].partition(">")[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029\u202e") & set(data)
    embedded(page)


def test_scripts_and_styles_are_those_that_the_policy_names() -> None:
    page = render(history(), LOCATION)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/=]{44}'", policy)) == 3
    body = page.partition("<body>")[2].partition("<script")[0]
    assert not re.search(r"<[^>]* (on\w+|style)=", body)
