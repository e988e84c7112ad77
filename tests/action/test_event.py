from __future__ import annotations

from typing import Any

import pytest

from tunegate_action.event import Event, read_event


def event(name: str, payload: dict[str, Any]) -> Event:
    environment = {"GITHUB_EVENT_NAME": name, "GITHUB_REPOSITORY": "acme/models"}
    return read_event(environment, payload)


def pull_request(head_repository: str | None) -> dict[str, Any]:
    repo = None if head_repository is None else {"full_name": head_repository}
    return {
        "number": 7,
        "pull_request": {
            "base": {"sha": "b" * 40},
            "head": {"sha": "a" * 40, "repo": repo},
        },
    }


def test_a_pull_request_of_the_repository_writes_its_own_zone() -> None:
    found = event("pull_request", pull_request("acme/models"))
    assert (found.strategy, found.zone, found.is_fork) == (
        "merge-commit",
        "pr/acme/models/7",
        False,
    )
    assert (found.first, found.second, found.pull_request) == ("b" * 40, "a" * 40, 7)


@pytest.mark.parametrize("head", ["mallory/models", None])
def test_a_fork_also_a_deleted_one_is_not_trusted(head: str | None) -> None:
    assert event("pull_request", pull_request(head)).is_fork


def test_a_push_to_the_default_branch_teaches_main() -> None:
    payload = {
        "ref": "refs/heads/trunk",
        "before": "b" * 40,
        "after": "a" * 40,
        "repository": {"default_branch": "trunk"},
    }
    found = event("push", payload)
    assert (found.strategy, found.first, found.second, found.zone) == (
        "push",
        "b" * 40,
        "a" * 40,
        "main",
    )


def test_a_push_to_another_branch_does_not() -> None:
    payload = {"ref": "refs/heads/feat/é", "repository": {"default_branch": "main"}}
    assert event("push", payload).zone == "pr/acme/models/branch_feat__"


def test_a_merge_queue_names_both_commits() -> None:
    payload = {"merge_group": {"base_sha": "b" * 40, "head_sha": "a" * 40}}
    found = event("merge_group", payload)
    assert (found.strategy, found.first, found.second) == ("range", "b" * 40, "a" * 40)


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch", "release", ""])
def test_any_other_event_compares_as_the_command_line_does(name: str) -> None:
    assert event(name, {}) == Event(strategy="default", repository="acme/models")
