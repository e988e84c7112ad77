"""Base and head of what happens to a repository: pull requests, pushes and merge queues."""

from tunegate.artifacts.changes import Revisions
from tunegate.errors import NoBaselineError, RevisionError
from tunegate.system.git import fetch, named_revision
from tunegate.system.git.compared_revisions import GitHistory

_OF_A_MERGE = 2
"""The number of a merge's parents."""


class GitEvents(GitHistory):
    """Finds base and head of an event, and checks that its commit is checked out."""

    def merge_commit_revisions(self, base_tip: str, head_tip: str, target: str = "") -> Revisions:
        """Returns the revisions of a pull request with these tips: its merge commit against the
        first parent, which a shallow checkout lacks but the commit itself names.

        If the pull request's own head is checked out, against its merge base with the base branch's
        tip. Raises RevisionError if something else is checked out. The first parent may be a later
        commit of the branch `target`, which is asked for if it can be fetched.
        """
        head = self.require_pull_request(head_tip)
        if head == head_tip:
            return self._from_merge_base(base_tip, head)
        parent = self._fetched_parent(head)
        if parent != head_tip and self._is_of_branch(parent, base_tip, target):
            return Revisions(base=parent, head=head, reason="first parent of the merge commit")
        message = (
            f"the merge commit {head[:12]} is not of the base {base_tip[:12]} that the event "
            "names. Push again, or close the pull request and open it again; an old one needs the "
            "whole history."
        )
        raise RevisionError(message)

    def _is_of_branch(self, commit: str, tip: str, name: str) -> bool:
        """Returns whether the branch has this commit, which may be later than a tip that it had. A
        checkout without credentials has the branch as it was when the job began. Raises
        EnvironmentUnfitError if the branch is not known."""
        if commit == tip:
            return True
        is_here = fetch.ensure_here(self._git, tip)
        if not is_here and not fetch.is_reachable(self._git):
            raise self._fetch_error(tip[:12], tip)
        if not is_here or not fetch.is_ancestor(self._git, tip, commit):  # gone by a forced push
            return False
        if not name or fetch.is_ancestor_here(
            self._git, commit, f"{self._git.remote_branches}{name}"
        ):
            return True
        branch = self._known_branch(name, is_here_enough=not fetch.is_shallow(self._git))
        return fetch.is_ancestor(self._git, commit, branch)

    def require_pull_request(self, tip: str) -> str:
        """Returns the checked out commit. Raises RevisionError if it does not belong to the pull
        request."""
        head = self.head()
        if self.is_of_pull_request(head, tip):
            return head
        message = (
            f"{head[:12]} is checked out: neither the pull request's head {tip[:12]} nor its merge "
            f"commit. Check out what the event names, or give base and head."
        )
        raise RevisionError(message)

    def is_of_pull_request(self, commit: str, tip: str) -> bool:
        """Returns whether this is the head of a pull request with this tip, or its merge with the
        target, in either direction."""
        parents = self._parents(commit)
        return commit == tip or (len(parents) == _OF_A_MERGE and tip in parents)

    def require_checked_out(self, commit: str) -> None:
        """Raises RevisionError if another commit is checked out."""
        head = self.head()
        if head != commit:
            message = (
                f"{head[:12]} is checked out, and the event is about {commit[:12]}. Check out what "
                "the event names, or give base and head. --ci none compares as without a CI."
            )
            raise RevisionError(message)

    def merge_base_revisions(self, target: str) -> Revisions:
        """Returns the checked out revision against the point where it left this commit or remote
        branch, whose rules judge."""
        if not fetch.is_commit_id(target):
            target = self.resolve_commit(self._known_branch(target), "--base")
        return self._from_merge_base(target, self.head())

    def usual_revisions(self, default_branch: str, *, is_here_enough: bool = False) -> Revisions:
        """Returns the checked out revision against this default branch as the remote has it ('' is
        the one found here). If it cannot be fetched, a local one of this name may be enough."""
        if not default_branch:
            return self.revisions(None, None)
        branch = self._known_branch(default_branch, is_here_enough=is_here_enough)
        return self._against(branch, self.head())

    def parent_revisions(self, default_branch: str) -> Revisions:
        """Returns the checked out revision, which is on the default branch, against its parent."""
        return self._against_parent(self.head(), f"the head is on {default_branch}")

    def push_revisions(
        self, before: str, after: str, default_branch: str = "", *, is_default: bool = False
    ) -> Revisions:
        """Returns the revisions of a push. A new branch has no commit before it, and nothing to
        compare if it is the default one; a forced push may have lost it."""
        head, is_new = self.resolve_commit(after, "--head"), set(before) == {"0"}
        if is_new and is_default:
            reason = "the first push of the default branch, and nothing was there before"
            return Revisions(base=None, head=head, reason=reason)
        if not is_new and fetch.ensure_here(self._git, before):
            return Revisions(base=before, head=head, reason="the commit before the push")
        if not is_new and fetch.is_shallow(self._git) and not fetch.is_reachable(self._git):
            raise self._fetch_error(before[:12], before)
        # Fetched, as a reused checkout has an old one.
        branch = (
            self._known_branch(default_branch)
            if default_branch
            else named_revision.default_branch(self._git)
        )
        why = "new branch: " if is_new else f"{before[:12]} is gone (forced push): "
        revisions = self._against_branch(branch, head, why)
        if revisions is not None:
            return revisions
        if is_new:
            return self._against_parent(
                head, f"{why}the head is on {named_revision.short_name(branch)}"
            )
        message = f"{why}nothing says how far back the push reached. Name a base to compare with."
        raise NoBaselineError(message)

    def range_revisions(self, base: str, head: str) -> Revisions:
        """Returns the two commits that the event names (merge queue), fetched if they are
        missing."""
        for commit in filter(fetch.is_commit_id, (base, head)):
            if not fetch.ensure_here(self._git, commit):
                raise self._fetch_error(commit[:12], commit)
        return Revisions(
            base=self.resolve_commit(base, "--base"),
            head=self.resolve_commit(head, "--head"),
            reason="named by the event",
        )

    # ---------------------------------------------------------------------------

    def _known_branch(self, name: str, *, is_here_enough: bool = False) -> str:
        """Returns the full name of a branch, fetched; if it cannot be, the one that is here may be
        enough. Raises EnvironmentUnfitError."""
        branch = fetch.fetch_branch(self._git, name)
        if branch is not None:
            return branch
        here = f"{self._git.remote_branches}{name}"
        if not is_here_enough or not fetch.is_ref(self._git, here):
            raise self._fetch_error(f"the branch {name}", name)
        self._git.is_remote_silent = True
        return here

    def _from_merge_base(self, tip: str, head: str) -> Revisions:
        base = self._merge_base(tip, head) if fetch.ensure_here(self._git, tip) else None
        if base is None:
            raise self._no_merge_base(f"no merge base with {tip[:12]} could be found")
        policy = tip if tip != base.commit else ""
        reason = f"merge base of the pull request{base.doubt}"
        return Revisions(base=base.commit, head=head, reason=reason, policy=policy)
