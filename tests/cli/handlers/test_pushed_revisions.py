from __future__ import annotations

import pytest

from tunegate.cli.handlers.steps import pushed_revisions
from tunegate.settings import Settings

PUSH = {"PRE_COMMIT_FROM_REF": "a" * 40, "PRE_COMMIT_TO_REF": "b" * 40}


def operands(settings: Settings, branch: str) -> tuple[str | None, str | None]:
    found = pushed_revisions(settings, {**PUSH, "PRE_COMMIT_REMOTE_BRANCH": branch}, "main")
    return found.base, found.head


def test_a_push_to_the_default_branch_is_compared_with_what_the_remote_has() -> None:
    assert operands(Settings(), "refs/heads/main") == ("a" * 40, "b" * 40)


@pytest.mark.parametrize("branch", ["refs/heads/topic", "refs/heads/x/main", "refs/tags/v1"])
def test_another_push_is_compared_with_where_its_branch_left_the_default_one(branch: str) -> None:
    assert operands(Settings(), branch) == (None, "b" * 40)


def test_a_run_of_two_references_is_about_them() -> None:
    assert operands(Settings(), "") == ("a" * 40, "b" * 40)


def test_what_the_command_line_names_counts() -> None:
    assert operands(Settings(base="v1", head="v2"), "refs/heads/main") == ("v1", "v2")


def test_a_run_by_hand_has_the_usual_revisions() -> None:
    assert pushed_revisions(Settings(), {}, "main") == Settings()
