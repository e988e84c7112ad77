"""What a collector reads is what was written, whatever the names are, and the dashboard of the
examples asks for metrics and labels that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plugin.render.history.hostile_entries import hostile_entries
from tests.support.golden import Golden
from tests.support.history import entry, history
from tunegate.artifacts.history import HistoryEntry
from tunegate.render.history.prometheus import METRICS, prometheus_text
from tunegate.run_history.model_costs import together

SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
"""The grammar of the text format 0.0.4."""


DASHBOARD = Path(__file__).resolve().parents[4] / "examples" / "grafana" / "tunegate.json"
CONTENT = json.loads(DASHBOARD.read_text())
QUERIES = [target["expr"] for panel in CONTENT["panels"] for target in panel["targets"]]
VARIABLES = [each["query"] for each in CONTENT["templating"]["list"] if each["type"] == "query"]
NAME = re.compile(r"tunegate_\w+")


def text_of(*entries: HistoryEntry) -> str:
    return prometheus_text(entries, together)


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.split("\n")[:-1]:
        if line.startswith("# "):
            continue
        found = SAMPLE.fullmatch(line)
        assert found is not None, line
        labels = found["labels"] or ""
        pairs = LABEL.findall(labels)
        assert LABEL.sub("", labels) == ""
        yield found["name"], dict(pairs), float(found["value"])


def test_the_text_is_as_it_was_when_it_was_last_reviewed(golden: Golden) -> None:
    golden.check("history.prom", text_of(*history()))


@settings(max_examples=40)
@given(st.lists(hostile_entries, max_size=4))
def test_every_line_can_be_read_and_no_sample_comes_twice(entries: list[HistoryEntry]) -> None:
    found = [(name, tuple(labels.items())) for name, labels, _ in samples(text_of(*entries))]
    assert len(set(found)) == len(found)
    assert {name for name, _ in found} <= {metric.name for metric in METRICS}


def test_the_latest_run_counts_and_sums_are_over_all() -> None:
    text = text_of(entry(2, head_ms=9.0), entry(1, head_ms=5.0))
    values = {name: value for name, _, value in samples(text)}
    assert values["tunegate_latency_seconds"] == pytest.approx(0.009)
    assert values["tunegate_tuning_usd"] == pytest.approx(0.04)
    assert values["tunegate_runs_read"] == 2


def test_a_quote_a_backslash_and_a_line_end_are_escaped() -> None:
    text = text_of(entry(1, model='a"b\\c', cost=None))
    assert 'model="a\\"b\\\\c"' in text
    assert text.endswith("\n")


def test_every_metric_has_its_help_and_type_before_its_samples() -> None:
    lines = text_of(*history()).splitlines()
    for metric in METRICS:
        (at,) = (n for n, line in enumerate(lines) if line == f"# TYPE {metric.name} gauge")
        assert lines[at - 1] == f"# HELP {metric.name} {metric.help}"
        assert lines[at + 1].startswith(metric.name)


def test_warming_is_no_latest_run() -> None:
    warmed = entry(9, status="warmed", head_ms=None, cost=None)
    values = {name: value for name, _, value in samples(text_of(entry(1), warmed))}
    assert values["tunegate_latency_seconds"] == pytest.approx(0.008)


def test_every_metric_is_shown_and_none_is_asked_for_that_there_is_not() -> None:
    asked = {name for query in (*QUERIES, *VARIABLES) for name in NAME.findall(query)}
    assert asked == {metric.name for metric in METRICS}


def test_a_query_names_labels_that_its_metrics_have() -> None:
    text = text_of(*history())
    legends = [target["legendFormat"] for panel in CONTENT["panels"] for target in panel["targets"]]
    for query, legend in zip(QUERIES, legends, strict=True):
        wanted = set(re.findall(r"(\w+)=~", query)) | set(re.findall(r"\{\{(\w+)\}\}", legend))
        for name in NAME.findall(query):
            sample = re.search(rf"^{name}(\{{.*\}})? ", text, re.MULTILINE)
            assert sample is not None
            assert wanted <= set(re.findall(r'(\w+)="', sample.group())), name


def test_panels_have_their_own_places() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in CONTENT["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in CONTENT["panels"]}) == len(CONTENT["panels"])
