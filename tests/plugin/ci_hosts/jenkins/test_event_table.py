from __future__ import annotations

from pathlib import Path

from tunegate.ci_hosts.event_table import as_markdown
from tunegate.ci_hosts.jenkins.event_table import JENKINS_EVENTS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "pipelines" / "jenkins.md"


def test_the_page_shows_the_table_as_it_is() -> None:
    assert as_markdown(JENKINS_EVENTS) in PAGE.read_text()
