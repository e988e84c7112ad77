from __future__ import annotations

from pathlib import Path

from tunegate.ci_hosts.circleci.event_table import CIRCLECI_EVENTS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "pipelines" / "circleci.md"


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in CIRCLECI_EVENTS if f"`{name}`" not in page] == []
