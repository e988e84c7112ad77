"""The revisions that an event means, found in a repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import assert_never

import msgspec

from tunegate.artifacts.changes import Revisions
from tunegate.ci.job_request import PLANNING, JobRequest
from tunegate.ci.protocol import (
    AskedRevisions,
    JobEvent,
    MergeBase,
    MergeCommit,
    Push,
    Range,
    RevisionChoice,
    Usual,
)
from tunegate.errors import TunegateError
from tunegate.system.git.fetch import is_commit_id
from tunegate.system.git.repository import GitRepository

_BRANCH = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]{1,250}")
"""What git may call a branch."""


def job_revisions(request: JobRequest, event: JobEvent) -> Revisions | None:
    """Every step sees that the checkout is what the event is about. A later step refuses a plan of
    other revisions; None where looking again may find others, such as a branch that has moved.

    Raises RevisionError, and NoBaselineError or EnvironmentUnfitError where there should be a base
    and it is not to be had.
    """
    repository, asked = GitRepository(request.repository), request.asked
    if not asked.head:
        _require_checkout(repository, event)
    is_later = request.step not in PLANNING
    if asked.since_release or (is_later and not _is_settled(asked, event.revisions)):
        return None
    if asked.no_base:
        return repository.revisions_without_base(asked.head or None)
    if asked.base or asked.head:
        return repository.asked_revisions(asked.base or None, asked.head or None)
    return _with_target(_compared(repository, event.revisions), event)


def _with_target(found: Revisions, event: JobEvent) -> Revisions:
    """The verdict names the branch that it is for: a pull request may get another target."""
    choice, target = event.revisions, event.target
    if not target and isinstance(choice, MergeBase) and not is_commit_id(choice.target):
        target = choice.target
    if not _BRANCH.fullmatch(target):
        return found
    return msgspec.structs.replace(found, reason=f"pull request into {target}: {found.reason}")


def is_of_pull_request(path: Path, commit: str, tip: str) -> bool:
    """Returns whether the commit is the head of the pull request with this tip, or its merge
    commit."""
    return bool(tip) and GitRepository(path).is_of_pull_request(commit, tip)


def reported_commit(request: JobRequest, event: JobEvent, revisions: Revisions | None) -> str:
    """The commit that people look at: the head of a pull request, not its merge commit. An empty
    string where the event is not about the commit that is judged, or nobody says it yet."""
    if revisions is None and request.asked.head:
        return ""
    head = revisions.head if revisions else ""
    try:
        is_tip = not head or is_of_pull_request(request.repository, head, event.tip)
    except TunegateError:
        is_tip = False
    if is_tip and event.tip:
        return event.tip
    return event.checked_out if head in {"", event.checked_out} else ""


def _require_checkout(repository: GitRepository, event: JobEvent) -> None:
    """That the checkout is what the event is about."""
    is_merged = isinstance(event.revisions, MergeBase) and event.tip and not event.checked_out
    if is_merged or isinstance(event.revisions, MergeCommit):
        repository.require_pull_request(event.tip)
    if event.checked_out:
        repository.require_checked_out(event.checked_out)


def _is_settled(asked: AskedRevisions, choice: RevisionChoice) -> bool:
    """Returns whether the event alone gives both commits."""
    return not (asked.base or asked.head) and isinstance(choice, MergeCommit | Range)


def _compared(repository: GitRepository, choice: RevisionChoice) -> Revisions:
    match choice:
        case MergeCommit(base_tip=base_tip, head_tip=head_tip):
            return repository.merge_commit_revisions(base_tip, head_tip)
        case MergeBase(target=target):
            return repository.merge_base_revisions(target)
        case Push(before=before, after=after, default_branch=branch, is_default=is_default):
            return repository.push_revisions(before, after, branch, is_default=is_default)
        case Range(base=base, head=head):
            return repository.range_revisions(base, head)
        case Usual(default_branch=branch, is_on_it=True):
            return repository.parent_revisions(branch)
        case Usual(default_branch=branch, is_here_enough=is_enough):
            return repository.usual_revisions(branch, is_here_enough=is_enough)
    assert_never(choice)
