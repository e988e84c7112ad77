"""Fetches the commits that a clone lacks. A shallow or partial one gets no blobs: those of changed
models are fetched when they are read. A whole clone stays one, as git keeps a filter for good."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from tunegate.system.git.process import GitProcess

_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FETCH = (
    "fetch",
    "-q",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
)
_FILTER = "--filter=blob:none"
_DEEPENINGS = (50, 500)
ASK_SECONDS = 30


def is_commit_id(text: str) -> bool:
    """Returns whether the text is a full commit id. Git would take anything else for a branch or an
    option."""
    return _COMMIT_ID.fullmatch(text) is not None


def is_here(git: GitProcess, commit: str) -> bool:
    """Returns whether this clone has the commit."""
    if not is_commit_id(commit):
        return False
    return git.output("cat-file", "-e", f"{commit}^{{commit}}") is not None


def is_ref(git: GitProcess, ref: str) -> bool:
    """Returns whether this is the full name of a branch or tag here."""
    return git.text("show-ref", "--verify", "-q", ref) is not None


def is_shallow(git: GitProcess) -> bool:
    return git.text("rev-parse", "--is-shallow-repository") == "true"


def has_remote(git: GitProcess) -> bool:
    return git.text("config", "--get", f"remote.{git.remote}.url") is not None


def is_reachable(git: GitProcess) -> bool:
    """Returns whether the remote answers."""
    return git.text("ls-remote", git.remote, "HEAD", limit_seconds=ASK_SECONDS) is not None


def ensure_here(git: GitProcess, commit: str) -> bool:
    """Fetches the commit if it is missing, and returns whether it is here."""
    if is_here(git, commit) or not is_commit_id(commit):
        return is_here(git, commit)
    git.text(*_one_commit(git), git.remote, commit)
    return is_here(git, commit)


def refusal(git: GitProcess, wanted: str = "") -> str:
    """Returns git's reason why this commit or branch cannot be fetched: it is fetched once more.
    Without one, and for what is neither, why the remote does not answer."""
    line: tuple[str, ...] = ("ls-remote", git.remote, "HEAD")
    if is_commit_id(wanted):
        line = (*_one_commit(git), git.remote, wanted)
    elif wanted and git.text("check-ref-format", f"refs/heads/{wanted}") is not None:
        line = (*_one_commit(git), git.remote, _refspec(git, wanted))
    why = git.complaint(*line, limit_seconds=ASK_SECONDS)
    return why or "the remote does not give it"


def deepened_until(git: GitProcess, is_enough: Callable[[], bool], *heads: str) -> bool:
    """Deepens a shallow clone step by step, up to its whole history, until `is_enough()`, and
    returns whether it is."""
    for commits in (*_DEEPENINGS, None):
        if is_enough():
            return True
        if not is_shallow(git) or not deepen(git, commits, *heads):
            return False
    return is_enough()


def deepen(git: GitProcess, commits: int | None, *heads: str) -> bool:
    """Fetches that many more commits (None: all), and returns whether it could. Git deepens only
    what it is asked for, and a pull request's commit is on no branch. A commit that was never
    pushed spoils a request, so each head is asked for alone, and the branches."""
    more = "--unshallow" if commits is None else f"--deepen={commits}"
    fetch = (*_FETCH, _FILTER, more, git.remote)
    # The remote knows a commit by its id, and not by the name of a branch here.
    ids = [git.text("rev-parse", "--verify", "-q", f"{head}^{{commit}}") or head for head in heads]
    if git.text(*fetch, *ids) is not None:
        return True
    answers = [git.text(*fetch, *head) for head in (*((head,) for head in ids), ())]
    return any(answer is not None for answer in answers)


def _one_commit(git: GitProcess) -> tuple[str, ...]:
    """Returns how a commit is fetched that may be the only one of its branch here. A depth would
    make a full clone shallow."""
    depth = ("--depth=1",) if is_shallow(git) else ()
    return (*_FETCH, *([_FILTER] if depth or is_partial(git) else []), *depth)


def is_partial(git: GitProcess) -> bool:
    """Returns whether this clone may lack blobs."""
    return git.text("config", "--get", f"remote.{git.remote}.promisor") == "true"


def fetch_blobs(git: GitProcess, blobs: Collection[str]) -> None:
    """Fetches what a blobless clone lacks of these by one request: git makes one for each. What
    the remote does not give is missing afterwards, too."""
    if not blobs or not is_partial(git):
        return
    look = ("rev-list", "--objects", "--no-walk", "--missing=print", "--ignore-missing", "--stdin")
    here = git.output(*look, standard_input=as_lines(blobs))
    if here is None:
        return
    missing = set(blobs).difference(line.split()[0] for line in here.decode().splitlines())
    if missing:
        at_once = {"fetch.negotiationAlgorithm": "noop"}
        git.output(
            *_FETCH,
            _FILTER,
            "--stdin",
            git.remote,
            standard_input=as_lines(missing),
            settings=at_once,
        )


def as_lines(words: Iterable[str]) -> bytes:
    """Returns the words as git reads them from its standard input."""
    return "".join(f"{word}\n" for word in words).encode()


def fetch_branch(git: GitProcess, name: str) -> str | None:
    """Fetches a branch of the remote, and returns its full name here."""
    if git.text("check-ref-format", f"refs/heads/{name}") is None:
        return None
    answer = git.text(*_one_commit(git), git.remote, _refspec(git, name))
    return None if answer is None else f"{git.remote_branches}{name}"


def _refspec(git: GitProcess, branch: str) -> str:
    return f"+refs/heads/{branch}:{git.remote_branches}{branch}"


def has_branch(git: GitProcess, name: str) -> bool | None:
    """Returns whether the remote has a branch of this name now, None if it does not say."""
    line = ("ls-remote", git.remote, f"refs/heads/{name}")
    output = git.text(*line, limit_seconds=ASK_SECONDS)
    git.is_remote_silent |= output is None
    return None if output is None else bool(output)


def fetch_tag(git: GitProcess, name: str) -> None:
    """Fetches a tag of this name, if the remote has one and this clone has not."""
    ref = f"refs/tags/{name}"
    if git.text("check-ref-format", ref) is not None:
        git.text(*_one_commit(git), git.remote, f"{ref}:{ref}")


def fetch_tags(git: GitProcess, pattern: str) -> Mapping[str, str] | None:
    """Fetches the matching tags, with all the history that a shallow clone lacks, as a release may
    be any number of commits back. Returns those that the remote has now, with their objects; None
    if it does not answer, and the tags here without a remote. A tag that is here stays as it is."""
    if not has_remote(git):
        return tags_here(git, pattern)
    ask = ("ls-remote", "--refs", git.remote, f"refs/tags/{pattern}")
    lines = git.lines(*ask, limit_seconds=ASK_SECONDS)
    if lines is None:
        return None
    whole = ("--unshallow",) if is_shallow(git) else ()
    filtered = [_FILTER] if whole or is_partial(git) else []
    git.text(*_FETCH, *filtered, *whole, git.remote, f"refs/tags/{pattern}:refs/tags/{pattern}")
    tags = (line.partition("\t") for line in lines)
    return {name.removeprefix("refs/tags/"): commit for commit, _, name in tags}


def tags_here(git: GitProcess, pattern: str) -> Mapping[str, str]:
    """Returns the matching tags with their objects."""
    form = "--format=%(objectname) %(refname:lstrip=2)"
    lines = git.lines("for-each-ref", form, f"refs/tags/{pattern}") or ()
    tags = (line.partition(" ") for line in lines)
    return {name: commit for commit, _, name in tags}


# The commit at which two histories parted, even if a clone has only their ends.


class SharedCommit(NamedTuple):
    """A commit shared by two histories; `doubt` says for the report why another may be nearer, ''
    if not."""

    commit: str
    doubt: str


def merge_base(git: GitProcess, tip: str, head: str) -> SharedCommit | None:
    """Returns the newest commit that the head shares with the branch of this tip. History that a
    shallow clone lacks is fetched.

    Branches that were merged into each other share several. Then it is the first commit of the
    branch that has them all: beside one of them alone, a head that took back what another one
    brought would look unchanged.
    """

    def is_certain() -> bool:
        bases = _merge_bases(git, tip, head)
        return bool(bases) and is_history_whole(git, bases[0], head)

    is_cut = not deepened_until(git, is_certain, tip, head) and is_shallow(git)
    bases = _merge_bases(git, tip, head)
    if not bases:
        return None
    if len(bases) > 1:
        doubt = f" ({len(bases)} of them: the first commit there that has all)"
        return SharedCommit(_first_with_all(git, tip, bases), doubt)
    return SharedCommit(bases[0], ", as far as this shallow clone knows" if is_cut else "")


def is_history_whole(git: GitProcess, base: str, head: str) -> bool:
    """Returns whether each commit in the head but not in the base is known with its parents. A
    shallow clone cuts them off, and git then takes the commit for a repository's first."""
    line = ("rev-list", "--max-parents=0", "--max-count=1", f"{base}..{head}")
    return git.text(*line) == ""


def is_ancestor(git: GitProcess, ancestor: str, commit: str) -> bool:
    """Returns whether the commit's history contains the ancestor. What a shallow clone lacks is
    fetched."""

    return ancestor == commit or deepened_until(
        git, lambda: is_ancestor_here(git, ancestor, commit), commit
    )


def is_ancestor_here(git: GitProcess, ancestor: str, commit: str) -> bool:
    """Returns whether the commit's history, as far as it is here, contains the ancestor."""
    return git.text("merge-base", "--is-ancestor", ancestor, commit) is not None


def _merge_bases(git: GitProcess, tip: str, head: str) -> list[str]:
    """Returns the merge bases. In a shallow clone none means that git cannot walk there, not that
    there is none."""
    return (git.text("merge-base", "--all", tip, head) or "").split()


def _first_with_all(git: GitProcess, tip: str, bases: list[str]) -> str:
    """Returns the oldest commit along the first parents of the branch whose history has all of
    these."""
    line = ("rev-list", "--first-parent", "--reverse", tip, "--not", *bases)
    commits = (git.text(*line) or "").split() or [tip]

    def has_all(commit: str) -> bool:
        return all(is_ancestor_here(git, each, commit) for each in bases)

    return commits[bisect_left(commits, True, hi=len(commits) - 1, key=has_all)]
