"""The default branch, where nothing names it."""

from __future__ import annotations

import re
from typing import NamedTuple

from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.fetch import ASK_SECONDS, fetch_branch, is_ref
from tunegate.system.git.process import GitProcess

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
    """What the remote answers; None where it cannot be asked."""
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
