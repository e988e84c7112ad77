"""The two revisions to compare, in a shell and where no event gives them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.artifacts.changes import Revisions
from tunegate.errors import (
    EnvironmentUnfitError,
    NoBaselineError,
    RevisionError,
    TunegateError,
)
from tunegate.system.git.content import is_what_pointer_says
from tunegate.system.git.fetch import (
    SharedCommit,
    ensure_here,
    fetch_tags,
    is_ancestor,
    is_commit_id,
    is_shallow,
    merge_base,
)
from tunegate.system.git.named_revision import (
    default_branch,
    is_beside_default,
    known_default_branch,
    named_branches,
    named_commit,
    short,
)
from tunegate.system.git.process import GitProcess

REMEDY = "Check out the whole history, or fetch it before."

_READ_AS = "(tunegate.yaml is read as it is here, models and their data as committed)"


class GitHistory:
    """The ways to find base and head that need no event."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no repository."""
        self._git = GitProcess(path)
        self.root = self._git.root

    def state(self) -> str:
        """The state of the repository, in one line for people."""
        commit = self._git.text("rev-parse", "--short=12", "HEAD") or "no commit yet"
        branch = self._git.text("symbolic-ref", "--short", "-q", "HEAD") or "detached head"
        uncommitted = len(self._status().splitlines())
        parts = [f"{branch} at {commit}"]
        if is_shallow(self._git):
            parts.append("shallow (what is missing is fetched)")
        if uncommitted:
            parts.append(f"{uncommitted} uncommitted {_READ_AS}")
        return ", ".join([*parts, self._git.text("version") or "git"])

    def head(self) -> str:
        """The commit that is checked out. Raises RevisionError."""
        return self.named("HEAD", "--head")

    def default_branch_name(self) -> str:
        """Returns the name of the default branch on the remote, and before the first commit that of
        the unborn branch; '' where none is known here."""
        try:
            found = known_default_branch(self._git)
        except EnvironmentUnfitError:
            return ""
        return short(found or self._unborn() or "").removeprefix("origin/")

    def _unborn(self) -> str | None:
        has_commit = self._git.text("rev-parse", "--verify", "-q", "HEAD")
        return None if has_commit else self._git.text("symbolic-ref", "-q", "HEAD")

    def uncommitted(self) -> tuple[str, ...]:
        """The paths that are changed, new or gone in the working tree, and not committed."""
        lines = self._status("-z", "--no-renames", "--untracked-files=all").split("\0")
        changed = ((line[:2], line[3:]) for line in lines if line)
        return tuple(
            path
            for state, path in changed
            if state != " M" or not is_what_pointer_says(self._git, path)
        )

    def _status(self, *options: str) -> str:
        line = ("status", "--porcelain", "--ignore-submodules=all", *options)
        return self._git.text(*line, settings=self._git.without_filters()) or ""

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
        """The tag of a commit, the one of the highest version where it has several; an
        empty string where it has none."""
        if not commit:
            return ""
        tags = (self._git.text("tag", "--points-at", commit) or "").splitlines()
        return max(tags, key=_by_version, default="")

    def authored(self, commit: str) -> int | None:
        """The seconds since 1970 when a commit was written, wherever it was moved to since; None
        where it is not here, or lies before."""
        if not is_commit_id(commit):
            return None
        told = self._git.text("show", "-s", "--format=%at", commit) or ""
        return int(told) if told.isascii() and told.isdigit() else None

    def is_beside_default(self, commit: str) -> bool:
        """Returns whether a commit here is on no default branch, as far as this clone knows."""
        return self.authored(commit) is not None and is_beside_default(self._git, commit)

    def name(self) -> str:
        """The name of the repository: its path on the server that it came from, or else the name
        of its directory."""
        address = self._git.text("remote", "get-url", "origin") or ""
        return name_of_remote(address) or self.root.name

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        """The head against where it left the base branch, and on that branch against its parent.
        Without a base, or with zeros, by which CIs say that there was no commit before, that is the
        default branch; any other base is one commit, and taken literally. Raises RevisionError,
        NoBaselineError, EnvironmentUnfitError."""
        commit = self.named(head or "HEAD", "--head")
        if base is None or (is_commit_id(base) and set(base) == {"0"}):
            return self._against(default_branch(self._git), commit)
        given = self.named(base, "--base")
        branches = named_branches(self._git, base)
        if branches:
            return self._against_named(base, self._nearest(branches, commit), commit)
        return Revisions(base=given, head=commit, reason="given by --base")

    def revisions_without_base(self, head: str | None) -> Revisions:
        """The head alone: everything in it is new. Raises RevisionError."""
        commit = self.named(head or "HEAD", "--head")
        return Revisions(base=None, head=commit, reason="--no-base")

    def since_release(self, head: str | None, pattern: str) -> Revisions:
        """The head against the release before it. Tags are fetched each time, as a kept clone has
        old ones, and so is the history that a CI checkout lacks. Raises RevisionError."""
        commit = self.named(head or "HEAD", "--head")
        is_current = fetch_tags(self._git, pattern)
        release = release_before(self._git, commit, pattern)
        if release is None:
            message = (
                f"--since-release: no tag {pattern} is on an ancestor of {commit[:12]}. Tag a "
                f"release, or say in gate.release-tags what release tags are called."
            )
            raise RevisionError(message)
        doubt = ", by the tags that are here: the remote did not answer, or has moved one"
        return Revisions(
            base=release.commit,
            head=commit,
            reason=f"everything since release {release.tag}{'' if is_current else doubt}",
            release=release.tag,
        )

    def commit_of(self, revision: str | None, option: str) -> str | None:
        """The commit that an option names, fetched where it is missing. Raises RevisionError."""
        return None if revision is None else self.named(revision, option)

    def named(self, revision: str, option: str) -> str:
        """The commit of a name that somebody gave, fetched where it is missing. Raises
        RevisionError."""
        return named_commit(self._git, revision, option)

    def commits_between(self, good: str, bad: str) -> tuple[str, ...]:
        """The commits after `good` up to `bad` along first parents, the oldest first: a merge
        stands for what it brought. History that a shallow clone lacks is fetched. Raises
        RevisionError where the one is no ancestor of the other, or both are one."""
        shared = self._merge_base(good, bad)
        if shared is None or shared.commit != good or good == bad:
            what = "the same commit" if good == bad else "no ancestor of it"
            raise RevisionError(
                f"{good[:12]}..{bad[:12]}: the first is {what}. Name an older commit first."
            )
        line = ("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        return tuple((self._git.text(*line) or "").split())

    def subject(self, commit: str) -> str:
        """The first line of the commit's message."""
        return self._git.text("show", "-s", "--format=%s", commit) or ""

    def fetched(self, commit: str) -> bool:
        """Fetches the commit if it is missing, and returns whether it is here: the checkout of a
        later job may lack it."""
        return ensure_here(self._git, commit)

    def merged_before(self, head: str | None) -> str | None:
        """The newest ancestor of the head, or the head itself, that the default branch has; None
        where there is no such branch."""
        branch = known_default_branch(self._git)
        if branch is None:
            return None
        found = self._merge_base(branch, self.named(head or "HEAD", "--head"))
        return None if found is None else found.commit

    # ---------------------------------------------------------------------------

    def _against_named(self, name: str, branch: str, head: str) -> Revisions:
        """Returns the head against the branch of a name; the reason names the branch where it
        differs."""
        found = self._against(branch, head)
        if short(branch) == short(name).removeprefix("heads/"):
            return found
        why = f"--base {name} is {short(branch)} here, which the head left last"
        return msgspec.structs.replace(found, reason=f"{why}: {found.reason}")

    def _against(self, branch: str, head: str) -> Revisions:
        """The head against the branch, and on it against the parent."""
        on_it = f"the head is on {short(branch)}"
        return self._against_branch(branch, head) or self._against_parent(head, on_it)

    def _against_branch(self, branch: str, head: str, why: str = "") -> Revisions | None:
        """The head against the branch, or None where the head is on the branch itself."""
        tip = self._git.text("rev-parse", "--verify", "-q", f"{branch}^{{commit}}") or ""
        found = SharedCommit(head, "") if tip == head else self._merge_base(branch, head)
        if found is None:
            raise self._no_merge_base(f"{why}no merge base with {short(branch)} was found")
        if found.commit == head:
            return None
        policy = tip if tip != found.commit else ""
        reason = f"{why}merge base with {short(branch)}{found.doubt}"
        return Revisions(base=found.commit, head=head, reason=reason, policy=policy)

    def _nearest(self, branches: Sequence[str], head: str) -> str:
        """Returns the branch that the head left last: a local one may be older than that of the
        remote, or have unpushed commits."""
        chosen, *others = branches
        for branch in others:
            left, later = self._merge_base(chosen, head), self._merge_base(branch, head)
            if later and (left is None or is_ancestor(self._git, left.commit, later.commit)):
                chosen = branch
        return chosen

    def _against_parent(self, head: str, why: str) -> Revisions:
        if not self._parents(head):
            reason = "this is the first commit of the repository"
            return Revisions(base=None, head=head, reason=reason)
        return Revisions(base=self._fetched_parent(head), head=head, reason=f"{why}: its parent")

    def _fetched_parent(self, commit: str) -> str:
        """The parent of a commit that has one, fetched where it is missing."""
        parent = self._parents(commit)[0]
        if not ensure_here(self._git, parent):
            message = f"the parent {parent[:12]} of {commit[:12]} could not be fetched. {REMEDY}"
            raise EnvironmentUnfitError(message)
        return parent

    def _no_merge_base(self, what: str) -> TunegateError:
        """Returns the error for a missing merge base: a clone that lacks history cannot know that
        there is none."""
        if is_shallow(self._git):
            return EnvironmentUnfitError(f"{what} in this shallow clone. {REMEDY}")
        return NoBaselineError(f"{what}: nothing to compare with. Name a base to compare with.")

    def _merge_base(self, branch: str, head: str) -> SharedCommit | None:
        return merge_base(self._git, branch, head)

    def _parents(self, commit: str) -> tuple[str, ...]:
        """The parents of a commit, read from the commit itself: where a clone is shallow,
        git denies that there are any."""
        raw = self._git.text("cat-file", "commit", commit) or ""
        header = raw.partition("\n\n")[0].splitlines()
        return tuple(line.split()[1] for line in header if line.startswith("parent "))


# The release that a revision comes after.


class Release(NamedTuple):
    tag: str
    commit: str


_CANDIDATE = re.compile(
    r"(?<=[0-9*])[-._~]?"
    r"(?:(?:alpha|beta|rc|cr|milestone|pre|preview|prerelease|dev|snapshot|nightly|canary)(?![a-z])"
    r"|[abcm](?=[0-9*]))",
    re.IGNORECASE,
)
"""The part of a version that says of itself that it comes before the release: behind a number, or
behind the `*` of a pattern."""
_NUMBER = re.compile(r"[0-9]{1,18}")


def release_before(git: GitProcess, head: str, pattern: str) -> Release | None:
    """The tag like `pattern` of the highest version among ancestors of `head`, not on itself: a
    release is compared with the one before. When a tag was made says nothing: a hotfix is made
    after the release that has it, and an old commit may be tagged again. Candidates of a release
    count only where the pattern names them. Looks at what is here, and fetches nothing."""
    # %(*objectname) is the commit of an annotated tag, and empty for another.
    listed = git.text(
        "for-each-ref",
        f"--merged={head}",
        "--format=%(refname:lstrip=2) %(objectname) %(*objectname)",
        f"refs/tags/{pattern}",
    )
    found = []
    for line in (listed or "").splitlines():
        tag, *commits = line.split()
        is_named = _is_candidate(pattern) or not _is_candidate(tag)
        if commits[-1] != head and is_named:
            found.append(Release(tag, commits[-1]))
    highest = max((_numbers(each.tag) for each in found), default=())
    equal = [each for each in found if _numbers(each.tag) == highest]
    return max(equal, key=lambda each: (_by_version(each.tag), _height(git, each)), default=None)


def _by_version(tag: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """A key that sorts tags as their versions are: `v1.10` after `v1.9`, a candidate before its
    release, `-rc.10` after `-rc.2`."""
    candidate = _CANDIDATE.search(tag)
    which = _integers(tag[candidate.start() :]) if candidate else ()
    return (_numbers(tag), candidate is None, which)


def _numbers(tag: str) -> tuple[int, ...]:
    """The numbers of the version, which end where a candidate says which one it is. `v1.0` is
    `v1.0.0`."""
    candidate = _CANDIDATE.search(tag)
    found = _integers(tag[: candidate.start()] if candidate else tag)
    while found and found[-1] == 0:
        found = found[:-1]
    return found


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in _NUMBER.findall(text))


def _is_candidate(tag: str) -> bool:
    return _CANDIDATE.search(tag) is not None


def _height(git: GitProcess, release: Release) -> int:
    """Returns how many commits the release has: of two of one version, or of none, the later one
    counts."""
    return int(git.text("rev-list", "--count", release.commit) or 0)


# The name of a repository on its server. Pure.

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/(?P<path>.*)", re.IGNORECASE)
_SHORT = re.compile(r"[^/]*:(?P<path>.*)")
"""The form `user@host:path` of SSH."""
_NAME = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)*", re.ASCII)


def name_of_remote(address: str) -> str:
    """The path, as in `owner/name`: never the host's part, where a secret may stand. '' for a
    directory, and for what is no name."""
    found = _URL.fullmatch(address) or _SHORT.fullmatch(address)
    if found is None or address.startswith("file:"):
        return ""
    path = found["path"].strip("/").removesuffix(".git")
    return path if _NAME.fullmatch(path) else ""
