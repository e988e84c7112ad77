from __future__ import annotations

from pathlib import Path

from tunegate.ci_hosts.buildkite.event_table import BUILDKITE_EVENTS
from tunegate.ci_hosts.event_table import as_markdown

PAGE = Path(__file__).resolve().parents[4] / "docs" / "pipelines" / "buildkite.md"


def test_the_page_shows_the_table_as_it_is() -> None:
    assert as_markdown(BUILDKITE_EVENTS) in PAGE.read_text()
