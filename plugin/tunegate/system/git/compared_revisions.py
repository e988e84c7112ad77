"""The two revisions to compare, in a shell and where no event names them."""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate import errors
from tunegate.artifacts.changes import Revisions
from tunegate.system.git import fetch, named_revision
from tunegate.system.git.content import is_what_pointer_says
from tunegate.system.git.process import GitProcess, escaped

_AS_HERE = ", as this clone has it"
REMEDY = "Check out the whole history, or fetch it before."

_READ_AS = "(tunegate.yaml is read as it is here, models and their data as committed)"


class GitHistory:
    """Finds base and head without an event."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError if there is no repository."""
        self._git = GitProcess(path)
        self.root = self._git.root

    def state(self) -> str:
        """Returns the state of the repository in one line for people."""
        commit = self._git.text("rev-parse", "--short=12", "HEAD") or "no commit yet"
        branch = self._git.text("symbolic-ref", "--short", "-q", "HEAD") or "detached head"
        count = len([*filter(None, self._status().split("\n"))])
        parts = [f"{branch} at {commit}"]
        if fetch.is_shallow(self._git):
            parts.append("shallow (what is missing is fetched)")
        if count:
            parts.append(f"{count} uncommitted {_READ_AS}")
        return ", ".join([*parts, self._git.text("version") or "git"])

    def head(self) -> str:
        """Returns the checked out commit. Raises RevisionError."""
        return self.resolve_commit("HEAD", "--head")

    def default_branch_name(self) -> str:
        """Returns the name of the default branch on the remote, or before the first commit that of
        the unborn branch; '' if none is known here."""
        try:
            branch = named_revision.default_branch_name(self._git)
        except errors.EnvironmentUnfitError:
            return ""
        return branch or named_revision.short_name(self._unborn())

    def _unborn(self) -> str:
        has_commit = self._git.text("rev-parse", "--verify", "-q", "HEAD")
        return "" if has_commit else self._git.text("symbolic-ref", "-q", "HEAD") or ""

    def uncommitted_paths(self) -> tuple[str, ...]:
        """Returns the uncommitted paths: changed, new or deleted in the working tree."""
        lines = self._status("-z", "--no-renames", "--untracked-files=all").split("\0")
        entries = ((line[:2], line[3:]) for line in lines if line)
        return tuple(
            escaped(path)
            for state, path in entries
            if state != " M" or not is_what_pointer_says(self._git, path)
        )

    def _status(self, *options: str) -> str:
        line = ("status", "--porcelain", "--ignore-submodules=all", *options)
        return self._git.text(*line, settings=self._git.without_filters()) or ""

    def before_last_change(self, revision: str, *paths: str) -> tuple[str, int] | None:
        """Returns the commit of the last change but one of any of these files along first parents,
        and its age in commits; None if the history here has no such commit."""
        line = ("--first-parent", "--format=%H", "-n", "2", revision, "--", *paths)
        commits = (self._git.text("--literal-pathspecs", "log", *line) or "").split()
        if len(commits) < 2:  # noqa: PLR2004 -- the present content has one
            return None
        age = self._git.text("rev-list", "--first-parent", "--count", f"{commits[1]}..{revision}")
        return commits[1], int(age or 0)

    def release(self, commit: str) -> str:
        """Returns the tag of a commit (of several, that of the highest version), an empty string
        without one."""
        tags = (self._git.lines("tag", "--points-at", commit) if commit else None) or ()
        return escaped(max(tags, key=_version_key, default=""))

    def authored_at(self, commit: str) -> int | None:
        """Returns when a commit was written, in seconds since 1970, wherever it was moved since;
        None if it is not here, or was written before 1970."""
        if not fetch.is_commit_id(commit):
            return None
        seconds = self._git.text("show", "-s", "--format=%at", commit) or ""
        return int(seconds) if seconds.isascii() and seconds.isdigit() else None

    def is_beside_default(self, commit: str) -> bool:
        """Returns whether a commit here is on no default branch, as far as this clone knows."""
        return self.authored_at(commit) is not None and named_revision.is_beside_default(
            self._git, commit
        )

    def name(self) -> str:
        """Returns the name of the repository: its path on the server it came from, or the name of
        its directory."""
        address = self._git.text("remote", "get-url", self._git.remote) or ""
        return name_of_remote(address) or self.root.name

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        """Returns the head against the point where it left the base branch, or on that branch
        against its parent. Without a base (or with zeros, by which CIs mean "no commit before")
        that is the default branch; any other base is one commit, taken literally. A branch is
        fetched, as a kept clone has an old one. Raises RevisionError, NoBaselineError,
        EnvironmentUnfitError."""
        commit = self.resolve_commit(head or "HEAD", "--head")
        if base is None or (fetch.is_commit_id(base) and set(base) == {"0"}):
            return self._against(named_revision.default_branch(self._git), commit)
        named_revision.fetch_if_branch(self._git, base)
        base_commit = self.resolve_commit(base, "--base")
        branches = named_revision.named_branches(self._git, base)
        if branches:
            return self._against_named(base, self._nearest_branch(branches, commit), commit)
        return Revisions(base=base_commit, head=commit, reason="given by --base")

    def revisions_without_base(self, head: str | None) -> Revisions:
        """Returns the head alone: everything in it is new. Raises RevisionError."""
        commit = self.resolve_commit(head or "HEAD", "--head")
        return Revisions(base=None, head=commit, reason="--no-base")

    def since_release(self, head: str | None, pattern: str) -> Revisions:
        """Returns the head against the release before it. Tags are fetched each time, as a kept
        clone has old ones, and so is the history that a CI checkout lacks. Raises RevisionError."""
        commit = self.resolve_commit(head or "HEAD", "--head")
        remote_tags = fetch.fetch_tags(self._git, pattern)
        release = release_before(self._git, commit, pattern)
        if release is None and remote_tags is None:
            raise self._fetch_error(f"tags {pattern}", "")
        if release is None:
            message = (
                f"--since-release: no commit before {commit[:12]} has a tag {pattern}, and a first "
                "release has nothing before it. gate.release-tags says what they are called."
            )
            raise errors.RevisionError(message)
        doubt = _doubt_of(release, fetch.tags_here(self._git, pattern), remote_tags)
        return Revisions(
            base=release.commit,
            head=commit,
            reason=f"everything since release {release.tag}{doubt}",
            release=escaped(release.tag),
        )

    def commit_of(self, revision: str | None, option: str) -> str | None:
        """Returns the commit that an option names, fetched if it is missing. Raises
        RevisionError."""
        return None if revision is None else self.resolve_commit(revision, option)

    def resolve_commit(self, revision: str, option: str) -> str:
        """Returns the commit of a name that somebody gave, fetched if it is missing. Raises
        RevisionError."""
        return named_revision.named_commit(self._git, revision, option)

    def commits_between(self, good: str, bad: str) -> tuple[str, ...]:
        """Returns the commits after `good` up to `bad` along first parents, oldest first: a merge
        stands for what it brought. History that a shallow clone lacks is fetched. Raises
        RevisionError unless `good` is a proper ancestor of `bad`."""
        base = self._merge_base(good, bad)
        if base is None or base.commit != good or good == bad:
            what = "the same commit" if good == bad else "no ancestor of it"
            raise errors.RevisionError(
                f"{good[:12]}..{bad[:12]}: the first is {what}. Name an older commit first."
            )
        line = ("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        return tuple((self._git.text(*line) or "").split())

    def subject(self, commit: str) -> str:
        """Returns the first line of the commit's message."""
        return escaped(self._git.text("show", "-s", "--format=%s", commit) or "")

    def fetch_commit(self, commit: str) -> bool:
        """Fetches the commit if it is missing, and returns whether it is here: a later job's
        checkout may lack it."""
        return fetch.ensure_here(self._git, commit)

    def merged_before(self, head: str | None) -> str | None:
        """Returns the newest ancestor of the head, or the head itself, that is on the default
        branch; None without such a branch."""
        branch = named_revision.known_default_branch(self._git)
        if branch is None:
            return None
        base = self._merge_base(branch, self.resolve_commit(head or "HEAD", "--head"))
        return None if base is None else base.commit

    # ---------------------------------------------------------------------------

    def _against_named(self, name: str, branch: str, head: str) -> Revisions:
        """Returns the head against the branch of a name; the reason names the branch if it is
        another."""
        revisions = self._against(branch, head)
        if named_revision.short_name(branch) == named_revision.short_name(name).removeprefix(
            "heads/"
        ):
            return revisions
        why = f"--base {name} is {named_revision.short_name(branch)} here, which the head left last"
        return msgspec.structs.replace(revisions, reason=f"{why}: {revisions.reason}")

    def _against(self, branch: str, head: str) -> Revisions:
        """Returns the head against the branch, or on it against the parent."""
        on_it = f"the head is on {named_revision.short_name(branch)}"
        return self._against_branch(branch, head) or self._against_parent(head, on_it)

    def _against_branch(self, branch: str, head: str, why: str = "") -> Revisions | None:
        """Returns the head against the branch, None if the head is on the branch itself."""
        tip = self._git.text("rev-parse", "--verify", "-q", f"{branch}^{{commit}}") or ""
        base = fetch.SharedCommit(head, "") if tip == head else self._merge_base(branch, head)
        if base is None:
            raise self._no_merge_base(
                f"{why}no merge base with {named_revision.short_name(branch)} was found"
            )
        if base.commit == head:
            return None
        policy = tip if tip != base.commit else ""
        doubt = f"{base.doubt}{self._age(branch)}"
        reason = f"{why}merge base with {named_revision.short_name(branch)}{doubt}"
        return Revisions(base=base.commit, head=head, reason=reason, policy=policy)

    def _age(self, branch: str) -> str:
        """Returns why a remote's branch here may be older than the one there, '' if it is not."""
        if not branch.startswith("refs/remotes/"):
            return ""
        if not branch.startswith(self._git.remote_branches):
            return f"{_AS_HERE}: of remotes, only {self._git.remote} is asked"
        is_silent = self._git.is_remote_silent
        return f"{_AS_HERE}: the remote did not give it now" if is_silent else ""

    def _nearest_branch(self, branches: Sequence[str], head: str) -> str:
        """Returns the branch that the head left last: a local one may be older than the remote's,
        or have unpushed commits."""
        nearest, *others = branches
        for branch in others:
            old, later = self._merge_base(nearest, head), self._merge_base(branch, head)
            if later and (old is None or fetch.is_ancestor(self._git, old.commit, later.commit)):
                nearest = branch
        return nearest

    def _against_parent(self, head: str, why: str) -> Revisions:
        if not self._parents(head):
            reason = "this is the first commit of the repository"
            return Revisions(base=None, head=head, reason=reason)
        return Revisions(base=self._fetched_parent(head), head=head, reason=f"{why}: its parent")

    def _fetched_parent(self, commit: str) -> str:
        """Returns the parent of a commit that has one, fetched if it is missing."""
        parent = self._parents(commit)[0]
        if not fetch.ensure_here(self._git, parent):
            raise self._fetch_error(f"the parent {parent[:12]} of {commit[:12]}", parent)
        return parent

    def _fetch_error(self, what: str, wanted: str) -> errors.EnvironmentUnfitError:
        message = f"{what} could not be fetched ({fetch.refusal(self._git, wanted)}). {REMEDY}"
        return errors.EnvironmentUnfitError(message)

    def _no_merge_base(self, problem: str) -> errors.TunegateError:
        """Returns the error for a missing merge base: a clone that lacks history cannot know that
        there is none."""
        if fetch.is_shallow(self._git):
            return errors.EnvironmentUnfitError(f"{problem} in this shallow clone. {REMEDY}")
        return errors.NoBaselineError(
            f"{problem}: nothing to compare with. Name a base to compare with."
        )

    def _merge_base(self, branch: str, head: str) -> fetch.SharedCommit | None:
        return fetch.merge_base(self._git, branch, head)

    def _parents(self, commit: str) -> tuple[str, ...]:
        """Returns the parents of a commit, read from the commit itself: in a shallow clone git
        denies them."""
        header = takewhile(bool, self._git.lines("cat-file", "commit", commit) or ())
        return tuple(line.split()[1] for line in header if line.startswith("parent "))


# The release before a revision.


class Release(NamedTuple):
    tag: str
    commit: str


_CANDIDATE = re.compile(
    r"(?<=[0-9*])[-._~]?"
    r"(?:(?:alpha|beta|rc|cr|milestone|pre|preview|prerelease|dev|snapshot|nightly|canary|next|test"
    r"|ea|edge|experimental|unstable|insiders?)(?![a-z])"
    r"|[abcm](?=[0-9*]))",
    re.IGNORECASE,
)
"""The part of a version that marks a pre-release: behind a number, or behind the `*` of a
pattern."""
_NUMBER = re.compile(r"[0-9]{1,18}")


def release_before(git: GitProcess, head: str, pattern: str) -> Release | None:
    """Returns the tag like `pattern` with the highest version among ancestors of `head`, but not on
    `head`: a release is compared with the one before. Tag dates are ignored: a hotfix is made after
    later releases, and an old commit may be tagged again. Pre-releases count only if the pattern
    names them. Fetches nothing."""
    # %(*objectname) is the commit of an annotated tag, and empty for another.
    tag_lines = git.lines(
        "for-each-ref",
        "--format=%(objectname) %(*objectname) %(refname:lstrip=2)",
        f"refs/tags/{pattern}",
    )
    by_version: dict[tuple[int, ...], list[Release]] = {}
    for line in tag_lines or ():
        *commits, tag = line.split(" ", 2)
        commit = commits[1] or commits[0]
        is_named = _is_candidate(pattern) or not _is_candidate(tag)
        if commit != head and is_named:
            by_version.setdefault(_numbers(tag), []).append(Release(tag, commit))

    def is_before(release: Release) -> bool:
        # `--merged` goes by dates, and misses releases where a clock was wrong.
        return fetch.is_ancestor_here(git, release.commit, head)

    for version in sorted(by_version, reverse=True):
        if equal := [*filter(is_before, by_version[version])]:
            return max(equal, key=lambda each: (_version_key(each.tag), _height(git, each)))
    return None


def _doubt_of(
    release: Release, here: Mapping[str, str], remote_tags: Mapping[str, str] | None
) -> str:
    """Returns why another release may be the right one, '' if the tags here are the remote's."""
    if remote_tags is None:
        return ", by the tags that are here: the remote did not answer"
    if release.tag not in remote_tags:
        return ", a tag that the remote does not have"
    tags = sorted(tag for tag, commit in remote_tags.items() if here.get(tag, commit) != commit)
    return f", by the tags that are here: the remote has moved {tags[0]}" if tags else ""


def _version_key(tag: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """Returns a key that sorts tags by version: `v1.10` after `v1.9`, a pre-release before its
    release, `-rc.10` after `-rc.2`."""
    candidate = _CANDIDATE.search(tag)
    numbers = _integers(tag[candidate.start() :]) if candidate else ()
    return (_numbers(tag), candidate is None, numbers)


def _numbers(tag: str) -> tuple[int, ...]:
    """Returns the numbers of the version, up to a pre-release mark. `v1.0` is `v1.0.0`."""
    candidate = _CANDIDATE.search(tag)
    numbers = _integers(tag[: candidate.start()] if candidate else tag)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in _NUMBER.findall(text))


def _is_candidate(tag: str) -> bool:
    return _CANDIDATE.search(tag) is not None


def _height(git: GitProcess, release: Release) -> int:
    """Returns how many commits the release has: of two with one version, or none, the later one
    counts."""
    return int(git.text("rev-list", "--count", release.commit) or 0)


# The name of a repository on its server. Pure.

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/(?P<path>.*)", re.IGNORECASE)
_SHORT = re.compile(r"[^/]*:(?P<path>.*)")
"""SSH's short form, `user@host:path`."""
_PART = r"(?!\.\.?(?:/|$))[\w.-]+"
PROJECT_NAME = re.compile(f"{_PART}(?:/{_PART})*", re.ASCII)
"""A path on a server, such as `owner/name`, without `.` and `..`."""


def name_of_remote(address: str) -> str:
    """Returns the path, as in `owner/name`, never the host part, which may hold a secret. '' for a
    directory, and for what is no name."""
    match = _URL.fullmatch(address) or _SHORT.fullmatch(address)
    if match is None or address.startswith("file:"):
        return ""
    path = match["path"].strip("/").removesuffix(".git")
    return path if PROJECT_NAME.fullmatch(path) else ""
