"""Which two revisions to compare, for each event that CI knows and for a person at a shell."""

from __future__ import annotations

from pathlib import Path

from tunegate.artifacts.changes import Revisions
from tunegate.edges.git_fetch import (
    deepen,
    ensure_here,
    fetch_default_branch,
    is_shallow,
)
from tunegate.edges.git_process import GitProcess
from tunegate.edges.git_releases import release_before
from tunegate.errors import RevisionError

_EVERYTHING = "so every model is checked"
_DEEPENINGS = (50, 500)


class GitHistory:
    """The ways to find base and head are named after the event they fit."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no repository."""
        self._git = GitProcess(path)
        self.root = self._git.root

    def state(self) -> str:
        """Where the repository stands, in one line for people."""
        commit = self._git.text("rev-parse", "--short=12", "HEAD") or "no commit yet"
        branch = self._git.text("symbolic-ref", "--short", "-q", "HEAD") or "detached head"
        uncommitted = len((self._git.text("status", "--porcelain") or "").splitlines())
        parts = [f"{branch} at {commit}"]
        if is_shallow(self._git):
            parts.append("shallow (what is missing is fetched)")
        if uncommitted:
            parts.append(f"{uncommitted} uncommitted, which tunegate does not see")
        return ", ".join([*parts, self._git.text("version") or "git"])

    def before_last_change(self, revision: str, *paths: str) -> tuple[str, int] | None:
        """The commit of the last change but one of any of these files, along first parents, and how
        many commits back it is; None where the history here has no such commit."""
        line = ("--first-parent", "--format=%H", "-n", "2", revision, "--", *paths)
        commits = (self._git.text("--literal-pathspecs", "log", *line) or "").split()
        if len(commits) < 2:  # noqa: PLR2004 -- the present content has one
            return None
        counted = self._git.text(
            "rev-list", "--first-parent", "--count", f"{commits[1]}..{revision}"
        )
        return commits[1], int(counted or 0)

    def release(self, commit: str) -> str:
        """The tag of a commit, the latest where it has several; an empty string where it has none."""
        if not commit:
            return ""
        tags = self._git.text("tag", "--points-at", commit, "--sort=-creatordate") or ""
        return next(iter(tags.splitlines()), "")

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        """What was asked for, literally; without a base, the merge base with the default branch,
        and on that branch the parent."""
        commit = self._commit(head or "HEAD", "--head")
        if base is not None:
            given = self._commit(base, "--base")
            return Revisions(base=given, head=commit, reason="given by --base")
        branch = self._default_branch()
        if branch is None:
            return self._against_parent(commit, "there is no default branch to compare with")
        return self._against_branch(branch, commit) or self._against_parent(
            commit, f"the head is on {_short(branch)}"
        )

    def since_release(self, head: str | None, pattern: str) -> Revisions:
        """Against the release before. Raises RevisionError."""
        commit = self._commit(head or "HEAD", "--head")
        release = release_before(self._git, commit, pattern)
        return Revisions(
            base=release.commit,
            head=commit,
            reason=f"everything since release {release.tag}",
            release=release.tag,
        )

    def merged_before(self, head: str | None) -> str | None:
        """The newest ancestor of the head, or the head itself, that the default branch has; None where
        there is no such branch."""
        branch = self._default_branch()
        if branch is None:
            return None
        return self._merge_base(branch, self._commit(head or "HEAD", "--head"))

    def merge_commit_revisions(self, base_tip: str = "", head_tip: str = "") -> Revisions:
        """Of a pull request's merge commit: against its first parent, which a shallow checkout
        does not have but the commit itself names.

        Where the pull request's own head is checked out instead, against its merge base with the
        base branch's tip.
        """
        head = self._commit("HEAD", "--head")
        if head == head_tip:
            return self._from_merge_base(base_tip, head)
        parents = self._parents(head)
        if not parents:
            return Revisions(base=None, head=head, reason="the commit has no parent")
        if not ensure_here(self._git, parents[0]):
            why = f"the parent {parents[0][:12]} could not be fetched, {_EVERYTHING}"
            return Revisions(base=None, head=head, reason=why)
        return Revisions(base=parents[0], head=head, reason="first parent of the merge commit")

    def push_revisions(self, before: str, after: str) -> Revisions:
        """Of a push. A new branch has nothing before it; a forced push may have lost it."""
        head = self._commit(after, "--head")
        if set(before) != {"0"} and ensure_here(self._git, before):
            return Revisions(base=before, head=head, reason="the commit before the push")
        branch = self._default_branch() or fetch_default_branch(self._git)
        is_new = set(before) == {"0"}
        why = "new branch" if is_new else f"{before[:12]} is gone (forced push)"
        if branch is None:
            reason = f"{why}: no default branch to compare with, {_EVERYTHING}"
            return Revisions(base=None, head=head, reason=reason)
        found = self._against_branch(branch, head, f"{why}: ")
        if found is not None:
            return found
        if is_new:
            return self._against_parent(head, f"{why}: the head is on {_short(branch)}")
        # On the default branch nothing says how far back the push reached.
        return Revisions(base=None, head=head, reason=f"{why}, {_EVERYTHING}")

    def range_revisions(self, base: str, head: str) -> Revisions:
        """Of two commits that the event names (merge queue): both fetched where they are missing."""
        for commit in (base, head):
            ensure_here(self._git, commit)
        return Revisions(
            base=self._commit(base, "--base"),
            head=self._commit(head, "--head"),
            reason="named by the event",
        )

    # ---------------------------------------------------------------------------

    def _against_branch(self, branch: str, head: str, why: str = "") -> Revisions | None:
        """None where the head is on the branch itself."""
        tip = self._git.text("rev-parse", "--verify", "-q", f"{branch}^{{commit}}")
        base = head if tip == head else self._merge_base(branch, head)
        if base == head:
            return None
        if base is None:
            reason = f"{why}no merge base with {_short(branch)} was found, {_EVERYTHING}"
            return Revisions(base=None, head=head, reason=reason)
        return Revisions(base=base, head=head, reason=f"{why}merge base with {_short(branch)}")

    def _against_parent(self, head: str, why: str) -> Revisions:
        parents = self._parents(head)
        if not parents:
            return Revisions(base=None, head=head, reason=f"{why}, and it has no parent")
        if not ensure_here(self._git, parents[0]):
            reason = f"{why}, and its parent could not be fetched"
            return Revisions(base=None, head=head, reason=reason)
        return Revisions(base=parents[0], head=head, reason=f"{why}: its parent")

    def _from_merge_base(self, tip: str, head: str) -> Revisions:
        base = self._merge_base(tip, head) if ensure_here(self._git, tip) else None
        if base is None:
            why = f"no merge base with {tip[:12]} could be found, {_EVERYTHING}"
            return Revisions(base=None, head=head, reason=why)
        return Revisions(base=base, head=head, reason="merge base of the pull request")

    def _merge_base(self, branch: str, head: str) -> str | None:
        """An empty answer in a shallow clone means 'cannot walk', not 'no ancestor': deepen."""
        base = self._git.text("merge-base", branch, head)
        for commits in _DEEPENINGS:
            if base is not None or not is_shallow(self._git):
                break
            tip = self._commit(branch, "--base")
            deepen(self._git, commits, tip, head)
            base = self._git.text("merge-base", tip, head)
        return base

    def _parents(self, commit: str) -> tuple[str, ...]:
        """From the commit itself: where a clone is shallow, git denies that there are any."""
        raw = self._git.text("cat-file", "commit", commit) or ""
        header = raw.partition("\n\n")[0].splitlines()
        return tuple(line.split()[1] for line in header if line.startswith("parent "))

    def _default_branch(self) -> str | None:
        """Its full name: a tag or a local branch may have the short one too."""
        named = self._git.text("symbolic-ref", "-q", "refs/remotes/origin/HEAD")
        candidates = [named] if named else []
        candidates += [
            f"refs/{kind}/{name}"
            for name in ("main", "master")
            for kind in ("remotes/origin", "heads")
        ]
        for ref in candidates:
            if self._git.text("rev-parse", "--verify", "-q", f"{ref}^{{commit}}"):
                return ref
        return None

    def _commit(self, revision: str, option: str) -> str:
        found = self._git.text(
            "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}"
        )
        if found is None:
            message = (
                f'{option}: "{revision}" is no revision of {self.root}. Name a commit, branch or '
                f"tag that is here, or fetch it."
            )
            raise RevisionError(message)
        return found


def _short(ref: str) -> str:
    return ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")
