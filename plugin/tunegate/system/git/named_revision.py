"""The revisions of --base and --head: a branch, or one commit."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git import fetch
from tunegate.system.git.process import GitProcess

_NEW = "does not have any commits yet"
_BRANCHES = ("refs/heads/", "refs/remotes/")
_END = "--end-of-options"
_ANCESTOR = re.compile(r"([^~^]+)[~^][~^0-9]*")
_WAY = re.compile(r"[~^@:]")
_SURELY_AN_ID = 7
"""Git shows no shorter ids. A shorter name, such as a year, is an id only if an object has it."""
_DESCRIBED = re.compile(r".+-[0-9]+-g([0-9a-fA-F]{4,63})")
_SHORT_ID = re.compile(r"[0-9a-fA-F]{4,63}")


def named_commit(git: GitProcess, name: str, option: str) -> str:
    """Returns the commit. What is missing is fetched: a full id, a branch or tag of the remote, and
    the history that `HEAD~1` needs. Raises RevisionError."""
    commit = _resolve_here(git, name)
    if commit is None:
        _fetch(git, name)
        commit = _resolve_here(git, name) or _ancestor(git, name)
    if commit is None and name == "HEAD":
        raise RevisionError(_no_head(git))
    if commit is None:
        raise RevisionError(
            f'{option}: "{name}" is not a revision of {git.root}. Name a commit, branch or '
            f"tag that is here, or fetch it.{_advice(name)}"
        )
    _refuse_ambiguous(git, name, option)
    return commit


def _no_head(git: GitProcess) -> str:
    """Returns why there is no HEAD: a new repository has none, and a damaged one."""
    complaint = git.complaint("log", "-1")
    if _NEW in complaint or not complaint:
        return f"{git.root}: no commit yet. Commit models and configuration first."
    return f"{git.root}: git cannot read HEAD ({complaint})."


def named_branches(git: GitProcess, name: str) -> tuple[str, ...]:
    """Returns the full names of the branches of this name here: local, remote, or both. Empty for
    anything that names one commit: an id, a tag, `HEAD`, `main~1`."""
    if fetch.is_commit_id(name) or name in {"HEAD", "@"}:
        return ()
    if name.startswith(_BRANCHES) and fetch.is_ref(git, name):
        return (name,)
    plain = dict.fromkeys((*(f"{prefix}{name}" for prefix in _BRANCHES), _remote_ref(git, name)))
    refs_here = tuple(ref for ref in plain if fetch.is_ref(git, ref))
    if refs_here:
        return refs_here
    full = git.text("rev-parse", "--symbolic-full-name", "--verify", "-q", _END, name) or ""
    return (full,) if full.startswith(_BRANCHES) else ()


def fetch_if_branch(git: GitProcess, name: str) -> None:
    """Fetches the remote branch of this name as it is now. Raises RevisionError if the remote no
    longer has it: a kept clone's copy is as old as that. Where the remote does not give it, it is
    the one here, and known to be old."""
    is_there = None if fetch.is_commit_id(name) else fetch.has_branch(git, _branch_name(git, name))
    if is_there and fetch.fetch_branch(git, _branch_name(git, name)) is None:
        git.is_remote_silent = True
    is_known = any(fetch.is_ref(git, f"{prefix}{name}") for prefix in ("refs/heads/", "refs/tags/"))
    if is_there is False and not is_known and fetch.is_ref(git, _remote_ref(git, name)):
        message = (
            f'--base: the remote has no branch "{_branch_name(git, name)}" any more, and the one '
            "here is old. Name a branch that it has."
        )
        raise RevisionError(message)


def _resolve_here(git: GitProcess, name: str) -> str | None:
    """Returns the commit, also of a branch that only the remote has. `^main` is none: git answers
    with what to leave out."""
    if name.startswith("^"):
        return None
    names = (name, _remote_ref(git, name))
    ask = ("rev-parse", "--verify", "-q", _END)
    if fetch.is_commit_id(name) and git.text(*ask, name) != name:
        return None  # git takes an id of another length for a name
    return next(filter(None, (git.text(*ask, f"{each}^{{commit}}") for each in names)), None)


def _fetch(git: GitProcess, name: str) -> None:
    if fetch.is_commit_id(name):
        fetch.ensure_here(git, name)
    else:
        fetch.fetch_branch(git, _branch_name(git, name))
        fetch.fetch_tag(git, name.removeprefix("refs/tags/"))


def _ancestor(git: GitProcess, name: str) -> str | None:
    """Returns the commit of a name like `HEAD~2`: a shallow clone has only the first one."""
    suffix = _ANCESTOR.fullmatch(name)
    start = None if suffix is None else _resolve_here(git, suffix[1])
    if start is None:
        return None
    fetch.deepened_until(git, lambda: _resolve_here(git, name) is not None, start)
    return _resolve_here(git, name)


def _branch_name(git: GitProcess, name: str) -> str:
    """Returns the branch's name at the remote."""
    for prefix in ("refs/heads/", git.remote_branches, f"{git.remote}/"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _remote_ref(git: GitProcess, name: str) -> str:
    return f"{git.remote_branches}{_branch_name(git, name)}"


def _advice(name: str) -> str:
    if fetch.is_commit_id(name) or not _SHORT_ID.fullmatch(name):
        return ""
    return " Only a commit's whole id can be fetched."


def _refuse_ambiguous(git: GitProcess, name: str, option: str) -> None:
    """Raises RevisionError for an ambiguous name. Git prefers a tag to a branch of the same name, a
    local branch `origin/main` to the remote's `main`, and a reference to a commit's short id:
    whoever may push tags, or names the branch that is judged, could choose the base."""
    _refuse_id_as_name(git, name, option)
    tag, branches = f"refs/tags/{name}", [f"{prefix}{name}" for prefix in _BRANCHES]
    if name.startswith(f"{git.remote}/") and fetch.is_ref(git, branches[0]):
        fetch.fetch_branch(git, _branch_name(git, name))
    branches = [ref for ref in branches if fetch.is_ref(git, ref)]
    if fetch.is_ref(git, tag):
        others = branches or [_remote_ref(git, name)]
        _refuse_others(git, name, option, "a branch and a tag", [*others, tag])
    _refuse_others(git, name, option, "a local branch and one of a remote", branches)


def _refuse_others(git: GitProcess, name: str, option: str, kind: str, refs: Sequence[str]) -> None:
    """Raises RevisionError if these references of one name are of different commits."""
    ask = ("rev-parse", "--verify", "-q")
    commits = {git.text(*ask, f"{ref}^{{commit}}") for ref in refs} - {None}
    if len(commits) > 1:
        message = f'{option}: "{name}" is {kind}, of different commits. Name {" or ".join(refs)}.'
        raise RevisionError(message)


def _refuse_id_as_name(git: GitProcess, name: str, option: str) -> None:
    """Raises RevisionError for an ambiguous id. A full id is that commit, whatever else has its
    name. For a shorter one, also in `1a2b3c4d~1` and git-describe's `v1.0-3-g1a2b3c4d`, the
    intention is unclear."""
    start = _WAY.split(name, maxsplit=1)[0]
    match = _DESCRIBED.fullmatch(start)
    short = match[1] if match else start
    if fetch.is_commit_id(start) or not _SHORT_ID.fullmatch(short):
        return
    is_sure = len(short) >= _SURELY_AN_ID and not match
    if not is_sure and not git.text("rev-parse", f"--disambiguate={short}"):
        return
    refs = [ref for ref in _references(git, start) if fetch.is_ref(git, ref)]
    if refs:
        message = (
            f'{option}: "{start}" may be a commit\'s short id, and is the name of {refs[0]}. '
            f"Name the commit's whole id, or {refs[0]}."
        )
        raise RevisionError(message)


def _references(git: GitProcess, name: str) -> tuple[str, ...]:
    """Returns the full names that git would prefer to a commit's short id."""
    usual = (
        f"refs/tags/{name}",
        *(f"{prefix}{name}" for prefix in _BRANCHES),
        _remote_ref(git, name),
    )
    return (*usual, f"refs/{name}", f"refs/remotes/{name}/HEAD")


# The default branch, if nothing names it.

_USUAL = ("main", "master")


class _RemoteAnswer(NamedTuple):
    """A remote's answer: the name of its default branch ('' if it names none that it has) with its
    tip, and the recorded branch if the remote has it."""

    default: str
    tip: str
    branches: tuple[str, ...]


def default_branch(git: GitProcess) -> str:
    """Returns the full name of the default branch here: a tag or a local branch may share the short
    one. Raises RevisionError if it is unknown, EnvironmentUnfitError if it cannot be fetched."""
    branch = known_default_branch(git)
    if branch is not None:
        return branch
    if fetch.has_remote(git):
        raise EnvironmentUnfitError(
            f"the default branch could not be fetched ({fetch.refusal(git)}). Name it with --base, "
            "or fetch it before."
        )
    raise RevisionError(
        "no branch is the default one: there is no remote, or several and no origin, and none is "
        "called main, master or as init.defaultBranch says. Name what to compare with: --base "
        "BRANCH."
    )


def known_default_branch(git: GitProcess) -> str | None:
    """Returns the remote's answer, else the branch recorded in the clone, else one with a usual
    name; without a remote, the only branch. The remote is asked first: an old clone keeps its
    record after the remote renamed its default branch.

    Raises EnvironmentUnfitError if the remote does not answer and two branches are possible.
    """
    remote = _ask_remote(git)
    if not remote or not remote.default:
        return _default_here(git, remote)
    here = f"{git.remote_branches}{remote.default}"
    if fetch.is_ref(git, here) and git.text("rev-parse", here) == remote.tip:
        return here
    branch = fetch.fetch_branch(git, remote.default)
    git.is_remote_silent |= branch is None
    return branch or (here if fetch.is_ref(git, here) else None)


def default_branch_name(git: GitProcess) -> str | None:
    """Returns the default branch's name at the remote, None if none is known. Fetches nothing of a
    branch that the remote names. Raises as `known_default_branch` does."""
    remote = _ask_remote(git)
    if remote and remote.default:
        return remote.default
    branch = _default_here(git, remote)
    return None if branch is None else _name_there(git, branch)


def _default_here(git: GitProcess, remote: _RemoteAnswer | None) -> str | None:
    """Returns the branch to take where the remote names none, or does not answer."""
    record = _recorded_default(git)
    if not fetch.has_remote(git):
        return record or _local_default(git) or _only_branch(git)
    if record and not remote:
        return _recorded_unless_ambiguous(git, record)
    if record and remote and _name_there(git, record) in remote.branches:
        return record
    return _usual_branch(git) or _local_default(git)


def _recorded_unless_ambiguous(git: GitProcess, record: str) -> str:
    """Returns the recorded branch although the remote does not confirm it; raises if the clone has
    another one with a usual name."""
    others = [ref for ref in _usual_refs(git) if ref != record and fetch.is_ref(git, ref)]
    if others:
        message = (
            f"the remote does not answer ({fetch.refusal(git)}), and {short_name(record)} or "
            f"{short_name(others[0])} may be the default branch. Name it with --base."
        )
        raise EnvironmentUnfitError(message)
    return record


def is_beside_default(git: GitProcess, commit: str) -> bool:
    """Returns whether a commit is on no default branch, neither the remote's nor the local one of
    its name, as known here; False if there is no such branch. Asks nobody."""
    ref = _recorded_default(git) or next(
        (ref for ref in _usual_refs(git) if fetch.is_ref(git, ref)), _local_default(git)
    )
    if ref is None:
        return False
    here = f"refs/heads/{_name_there(git, ref)}"
    tips = [each for each in (ref, here) if fetch.is_ref(git, each)]
    return not any(fetch.is_ancestor_here(git, commit, tip) for tip in tips)


def short_name(ref: str) -> str:
    """Returns a branch's name as people know it."""
    return ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")


def _name_there(git: GitProcess, ref: str) -> str:
    return short_name(ref).removeprefix(f"{git.remote}/")


def _recorded_default(git: GitProcess) -> str | None:
    ref = git.text("symbolic-ref", "-q", f"{git.remote_branches}HEAD")
    return ref if ref and fetch.is_ref(git, ref) else None


def _usual_refs(git: GitProcess) -> tuple[str, ...]:
    return tuple(f"{git.remote_branches}{name}" for name in _USUAL)


def _ask_remote(git: GitProcess) -> _RemoteAnswer | None:
    """Returns the remote's answer, None without a remote or if it does not answer."""
    if not fetch.has_remote(git):
        return None
    record = _name_there(git, _recorded_default(git) or "")
    refs = ("HEAD", *([f"refs/heads/{record}"] if record else []))
    line = ("ls-remote", "--symref", git.remote, *refs)
    lines = git.lines(*line, limit_seconds=fetch.ASK_SECONDS)
    if lines is None:
        git.is_remote_silent = True
        return None
    match = re.match(r"ref: refs/heads/([^\t]+)\tHEAD", lines[0] if lines else "")
    # HEAD stands there twice: the branch that it is first, and then its commit.
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    prefix = "refs/heads/"
    branches = tuple(name.removeprefix(prefix) for name in commits if name.startswith(prefix))
    return _RemoteAnswer(match[1] if match else "", commits.get("HEAD", ""), branches)


def _usual_branch(git: GitProcess) -> str | None:
    """Returns a usual name among the branches of a remote that names no default."""
    here = next((ref for ref in _usual_refs(git) if fetch.is_ref(git, ref)), None)
    if here is not None:
        return here
    return next(filter(None, (fetch.fetch_branch(git, name) for name in _USUAL)), None)


def _local_default(git: GitProcess) -> str | None:
    names = filter(None, (git.text("config", "--get", "init.defaultBranch"), *_USUAL))
    refs = (f"refs/heads/{name}" for name in names)
    return next((ref for ref in refs if fetch.is_ref(git, ref)), None)


def _only_branch(git: GitProcess) -> str | None:
    match git.lines("for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes"):
        case [only]:
            return only
        case _:
            return None
