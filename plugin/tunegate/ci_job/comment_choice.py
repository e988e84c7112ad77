"""The choice whether to write a report on its pull request. Pure."""

from __future__ import annotations

from typing import Literal

from tunegate.artifacts.verdicts import Verdict
from tunegate.errors import PASS
from tunegate.settings import CommentWhen

CommentChoice = Literal["write", "update", "say that nothing changes", "leave"]


def comment_choice(when: CommentWhen, verdict: Verdict, changed_models: int) -> CommentChoice:
    """Returns what to do with the comment. A report that nobody waits for replaces an earlier one,
    and is not the first: an old alarm must not stay where there is none any more."""
    if when == "never":
        return "leave"
    is_weaker = any(each.weakens for each in verdict.policy_changes)
    is_less_exact = any(each.accuracy and each.accuracy.moved for each in verdict.findings)
    is_alert = verdict.exit_code != PASS or is_weaker or is_less_exact
    if when == "always" or is_alert:
        return "write"
    is_change = bool(changed_models or verdict.findings or verdict.policy_changes)
    if not is_change:
        return "say that nothing changes"
    return "write" if when == "on-change" else "update"
