from __future__ import annotations

from pathlib import Path

from tunegate.ci_hosts.event_table import as_markdown
from tunegate.ci_hosts.github.event_table import GITHUB_EVENTS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "github-action.md"
OF_GITHUB = """
branch_protection_rule check_run check_suite create delete deployment deployment_status discussion
discussion_comment fork gollum image_version issue_comment issues label merge_group milestone
page_build project project_card project_column public pull_request pull_request_comment
pull_request_review pull_request_review_comment pull_request_target push registry_package release
repository_dispatch schedule status watch workflow_call workflow_dispatch workflow_run
"""


def test_the_table_has_every_event_of_github() -> None:
    assert set(GITHUB_EVENTS) == set(OF_GITHUB.split())


def test_the_page_shows_the_table_as_it_is() -> None:
    assert as_markdown(GITHUB_EVENTS) in PAGE.read_text()
