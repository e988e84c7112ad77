from __future__ import annotations

from pathlib import Path

from tunegate.ci.gitlab.event import GITLAB_EVENTS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "gitlab.md"
OF_GITLAB = """
api chat external external_pull_request_event merge_request_event ondemand_dast_scan trigger
ondemand_dast_validation parent_pipeline pipeline push schedule security_orchestration_policy
web webide
"""


def test_the_table_has_every_source_of_gitlab() -> None:
    assert set(GITLAB_EVENTS) == set(OF_GITLAB.split())


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in GITLAB_EVENTS if f"`{name}`" not in page] == []
