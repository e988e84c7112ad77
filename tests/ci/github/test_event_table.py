from __future__ import annotations

from pathlib import Path

from tunegate.ci.github.event import GITHUB_EVENTS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "github.md"
OF_GITHUB = """
branch_protection_rule check_run check_suite create delete deployment deployment_status discussion
discussion_comment fork gollum image_version issue_comment issues label merge_group milestone
page_build project project_card project_column public pull_request pull_request_comment
pull_request_review pull_request_review_comment pull_request_target push registry_package release
repository_dispatch schedule status watch workflow_call workflow_dispatch workflow_run
"""


def test_the_table_has_every_event_of_github() -> None:
    assert set(GITHUB_EVENTS) == set(OF_GITHUB.split())


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in GITHUB_EVENTS if f"`{name}`" not in page] == []
