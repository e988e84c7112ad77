from __future__ import annotations

from pathlib import Path

from tunegate.ci_hosts.buildkite.event_table import BUILDKITE_EVENTS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "pipelines" / "buildkite.md"


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in BUILDKITE_EVENTS if f"`{name}`" not in page] == []
