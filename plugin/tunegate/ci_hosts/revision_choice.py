"""The ways in which an event can say which two revisions a job compares. Git finds them."""

from __future__ import annotations

import msgspec


class _Choice(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One of several."""


class MergeCommit(_Choice, frozen=True, kw_only=True):
    """The revisions of a pull request with these tips: its merge commit with the first parent,
    or its head with the merge base, whichever is checked out."""

    base_tip: str
    head_tip: str


class MergeBase(_Choice, frozen=True, kw_only=True):
    """The checkout, compared with where it left the target: a commit, or a branch of the remote.
    The target's rules judge."""

    target: str


class Push(_Choice, frozen=True, kw_only=True):
    """The commit after a push with the one before. `before` is zeros for a new branch, which is
    compared with its merge base with the default branch; '' is the one that git finds. With
    `is_default` it is the default branch that was pushed, whose first push has nothing before
    it."""

    before: str
    after: str
    default_branch: str = ""
    is_default: bool = False


class Range(_Choice, frozen=True, kw_only=True):
    """Two commits that the event names."""

    base: str
    head: str


class Usual(_Choice, frozen=True, kw_only=True):
    """The checkout, compared with its merge base with the default branch, and on that branch with
    its parent. '' is the default branch that git finds. A branch that is named is fetched; with
    `is_here_enough` it may be the one of the checkout where that fails, and where the event knows
    that the head `is_on_it` nothing is."""

    default_branch: str = ""
    is_here_enough: bool = False
    is_on_it: bool = False


RevisionChoice = MergeCommit | MergeBase | Push | Range | Usual
