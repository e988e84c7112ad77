from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.ci.events import EventTable
from tunegate_ci_hosts.azure.event_table import AZURE_EVENTS
from tunegate_ci_hosts.bitbucket.event_table import BITBUCKET_EVENTS
from tunegate_ci_hosts.buildkite.event_table import BUILDKITE_EVENTS
from tunegate_ci_hosts.circleci.event_table import CIRCLECI_EVENTS
from tunegate_ci_hosts.jenkins.event_table import JENKINS_EVENTS

PAGE = Path(__file__).resolve().parents[2] / "README.md"


@pytest.mark.parametrize(
    ("title", "events"),
    [
        ("Azure Pipelines", AZURE_EVENTS),
        ("Bitbucket Pipelines", BITBUCKET_EVENTS),
        ("Buildkite", BUILDKITE_EVENTS),
        ("CircleCI", CIRCLECI_EVENTS),
        ("Jenkins", JENKINS_EVENTS),
    ],
)
def test_every_event_is_in_its_part_of_the_page(title: str, events: EventTable) -> None:
    _, _, rest = PAGE.read_text().partition(f"\n## {title}\n")
    part, _, _ = rest.partition("\n## ")
    assert [name for name in events if f"`{name}`" not in part] == []
