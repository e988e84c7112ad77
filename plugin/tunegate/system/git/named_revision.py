"""The revisions of --base and --head: a branch, or one commit."""

from __future__ import annotations

import re
from typing import NamedTuple

from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.fetch import (
    ASK_SECONDS,
    deepened_until,
    ensure_here,
    fetch_branch,
    fetch_tag,
    has_branch,
    is_commit_id,
    is_ref,
)
from tunegate.system.git.process import GitProcess

_BRANCHES = ("refs/heads/", "refs/remotes/")
_END = "--end-of-options"
_OF_REMOTE = "refs/remotes/origin/"
_ANCESTOR = re.compile(r"([^~^]+)[~^][~^0-9]*")
_WAY = re.compile(r"[~^@:]")
_SURELY_AN_ID = 7
"""Git shows no shorter ids. A shorter name, such as a year, is one only where an object has it."""
_SHORT_ID = re.compile(r"[0-9a-fA-F]{4,63}")


def named_commit(git: GitProcess, name: str, option: str) -> str:
    """The commit. What is not here is fetched: a full id, a branch or a tag of the remote, and the
    history that `HEAD~1` needs. Raises RevisionError."""
    found = _here(git, name)
    if found is None:
        _fetch(git, name)
        found = _here(git, name) or _ancestor(git, name)
    if found is None and name == "HEAD":
        raise RevisionError(f"{git.root}: no commit yet. Commit models and configuration first.")
    if found is None:
        raise RevisionError(
            f'{option}: "{name}" is no revision of {git.root}. Name a commit, branch or '
            f"tag that is here, or fetch it.{_advice(name)}"
        )
    _refuse_ambiguous(git, name, option)
    return found


def named_branches(git: GitProcess, name: str) -> tuple[str, ...]:
    """Returns the full names of the branches of this name here: local, remote, or both. Empty for
    whatever names one commit, such as an id, a tag, `HEAD` and `main~1`."""
    if is_commit_id(name) or name in {"HEAD", "@"}:
        return ()
    if name.startswith(_BRANCHES) and is_ref(git, name):
        return (name,)
    plain = dict.fromkeys((*(f"{prefix}{name}" for prefix in _BRANCHES), _of_remote(name)))
    found = tuple(ref for ref in plain if is_ref(git, ref))
    if found:
        return found
    full = git.text("rev-parse", "--symbolic-full-name", "--verify", "-q", _END, name) or ""
    return (full,) if full.startswith(_BRANCHES) else ()


def fetch_if_branch(git: GitProcess, name: str) -> None:
    """Fetches the branch of the remote that is named so, as it is there now. Raises RevisionError
    for one that the remote no longer has: what a kept clone has of it is as old as that."""
    if is_commit_id(name) or fetch_branch(git, _plain(name)) is not None:
        return
    is_known = any(is_ref(git, f"{prefix}{name}") for prefix in ("refs/heads/", "refs/tags/"))
    if not is_known and is_ref(git, _of_remote(name)) and has_branch(git, _plain(name)) is False:
        message = (
            f'--base: the remote has no branch "{_plain(name)}" any more, and the one here is old. '
            "Name a branch that it has."
        )
        raise RevisionError(message)


def _here(git: GitProcess, name: str) -> str | None:
    """The commit, also of a branch that only the remote has."""
    asked = (name, _of_remote(name))
    ask = ("rev-parse", "--verify", "-q", _END)
    if is_commit_id(name) and git.text(*ask, name) != name:
        return None  # git takes an id of another length for a name
    return next(filter(None, (git.text(*ask, f"{each}^{{commit}}") for each in asked)), None)


def _fetch(git: GitProcess, name: str) -> None:
    if is_commit_id(name):
        ensure_here(git, name)
    else:
        fetch_branch(git, _plain(name))
        fetch_tag(git, name.removeprefix("refs/tags/"))


def _ancestor(git: GitProcess, name: str) -> str | None:
    """Returns the commit of a name like `HEAD~2`: a shallow clone has the first one alone."""
    way = _ANCESTOR.fullmatch(name)
    start = None if way is None else _here(git, way[1])
    if start is None:
        return None
    deepened_until(git, lambda: _here(git, name) is not None, start)
    return _here(git, name)


def _plain(name: str) -> str:
    """The name that a branch has at the remote."""
    for prefix in ("refs/heads/", _OF_REMOTE, "origin/"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _of_remote(name: str) -> str:
    return f"{_OF_REMOTE}{_plain(name)}"


def _advice(name: str) -> str:
    if is_commit_id(name) or not _SHORT_ID.fullmatch(name):
        return ""
    return " Only a commit's whole id can be fetched."


def _refuse_ambiguous(git: GitProcess, name: str, option: str) -> None:
    """Git takes a tag before a branch of the same name, and a reference before a commit's short id:
    who may push tags would choose the base."""
    _refuse_id_as_name(git, name, option)
    tag, branches = f"refs/tags/{name}", [f"{prefix}{name}" for prefix in _BRANCHES]
    if not is_ref(git, tag):
        return
    ask = ("rev-parse", "--verify", "-q")
    branches = [ref for ref in branches if is_ref(git, ref)] or [_of_remote(name)]
    found = {git.text(*ask, f"{ref}^{{commit}}") for ref in (tag, *branches)} - {None}
    if len(found) > 1:
        message = (
            f'{option}: "{name}" is a branch and a tag, of different commits. '
            f"Name refs/heads/{name} or refs/tags/{name}."
        )
        raise RevisionError(message)


def _refuse_id_as_name(git: GitProcess, name: str, option: str) -> None:
    """A full id is that commit, whatever else is called so. Of a shorter one, and of what begins
    with one such as `1a2b3c4d~1`, nobody can say what was meant."""
    start = _WAY.split(name, maxsplit=1)[0]
    if is_commit_id(start) or not _SHORT_ID.fullmatch(start):
        return
    if len(start) < _SURELY_AN_ID and not git.text("rev-parse", f"--disambiguate={start}"):
        return
    named = [ref for ref in _references(start) if is_ref(git, ref)]
    if named:
        message = (
            f'{option}: "{start}" may be a commit\'s short id, and is the name of {named[0]}. '
            f"Name the commit's whole id, or {named[0]}."
        )
        raise RevisionError(message)


def _references(name: str) -> tuple[str, ...]:
    """The full names that git would take this one for, before a commit's short id."""
    return (f"refs/tags/{name}", *(f"{prefix}{name}" for prefix in _BRANCHES), _of_remote(name))


# The default branch, where nothing names it.

_REMOTE = "refs/remotes/origin/"
_USUAL = ("main", "master")


def default_branch(git: GitProcess) -> str:
    """The full name of the default branch here, as a tag or a local branch may have the short one
    too. Raises RevisionError where none can be told, EnvironmentUnfitError where it is not to be
    had."""
    found = known_default_branch(git)
    if found is not None:
        return found
    if _has_remote(git):
        raise EnvironmentUnfitError(
            "the default branch could not be fetched. Name it with --base, or fetch it before."
        )
    raise RevisionError(
        "no branch is the default one: there is no remote, and none is called main, master or as "
        "init.defaultBranch says. Name what to compare with: --base BRANCH."
    )


def known_default_branch(git: GitProcess) -> str | None:
    """Returns the remote's answer, else the branch that the clone was told, else one of the usual
    names; without a remote the only branch that there is. An old clone keeps what it was told when
    the remote has renamed its default branch, so the remote is asked first.

    Raises EnvironmentUnfitError where it does not answer and two branches may be the one."""
    told = _told(git)
    if not _has_remote(git):
        return told or _local(git) or _only_branch(git)
    said = _said_by_remote(git)
    if said is None:
        return _unconfirmed(git, told) if told else _tracked(git) or _local(git)
    if said.default:
        here = f"{_REMOTE}{said.default}"
        return here if is_ref(git, here) else fetch_branch(git, said.default)
    if told and short(told).removeprefix("origin/") in said.branches:
        return told
    return _tracked(git) or _local(git)


def _unconfirmed(git: GitProcess, told: str) -> str:
    """The branch that the clone was told, which the remote does not confirm now: believed unless
    the clone has another one of a usual name."""
    others = [each for each in _usual_refs() if each != told and is_ref(git, each)]
    if others:
        message = (
            f"the remote does not answer, and {short(told)} or {short(others[0])} may be the "
            "default branch. Name it with --base."
        )
        raise EnvironmentUnfitError(message)
    return told


def is_beside_default(git: GitProcess, commit: str) -> bool:
    """Returns whether a commit is on no default branch, neither the remote's nor the local one of
    its name, by what is known here; False where no such branch is. Asks nobody."""
    ref = _told(git) or next((each for each in _usual_refs() if is_ref(git, each)), _local(git))
    if ref is None:
        return False
    here = f"refs/heads/{short(ref).removeprefix('origin/')}"
    tips = [each for each in (ref, here) if is_ref(git, each)]
    return all(git.text("merge-base", "--is-ancestor", commit, tip) is None for tip in tips)


def short(ref: str) -> str:
    """The name of a branch as people know it."""
    return ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")


def _told(git: GitProcess) -> str | None:
    told = git.text("symbolic-ref", "-q", f"{_REMOTE}HEAD")
    return told if told and is_ref(git, told) else None


def _usual_refs() -> tuple[str, ...]:
    return tuple(f"{_REMOTE}{name}" for name in _USUAL)


def _has_remote(git: GitProcess) -> bool:
    return git.text("config", "--get", "remote.origin.url") is not None


class _Said(NamedTuple):
    """A remote's answer: the name of its default branch, '' where it names none that it has, and of
    the branch that the clone was told, if the remote has it."""

    default: str
    branches: tuple[str, ...]


def _said_by_remote(git: GitProcess) -> _Said | None:
    """Returns what the remote answers; None where it cannot be asked."""
    told = short(_told(git) or "").removeprefix("origin/")
    asked = ("HEAD", *([f"refs/heads/{told}"] if told else []))
    line = ("ls-remote", "--symref", "origin", *asked)
    said = git.text(*line, limit_seconds=ASK_SECONDS)
    if said is None:
        return None
    named = re.match(r"ref: refs/heads/(\S+)\tHEAD", said)
    branches = re.findall(r"^[0-9a-f]+\trefs/heads/(\S+)$", said, re.MULTILINE)
    return _Said(named[1] if named else "", tuple(branches))


def _tracked(git: GitProcess) -> str | None:
    """Returns a usual name among the branches of a remote that names no default."""
    here = next((each for each in _usual_refs() if is_ref(git, each)), None)
    if here is not None:
        return here
    return next(filter(None, (fetch_branch(git, name) for name in _USUAL)), None)


def _local(git: GitProcess) -> str | None:
    names = filter(None, (git.text("config", "--get", "init.defaultBranch"), *_USUAL))
    refs = (f"refs/heads/{name}" for name in names)
    return next((ref for ref in refs if is_ref(git, ref)), None)


def _only_branch(git: GitProcess) -> str | None:
    listed = git.text("for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes") or ""
    match listed.split():
        case [only]:
            return only
        case _:
            return None
