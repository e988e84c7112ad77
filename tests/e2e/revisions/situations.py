"""Lines of the table in docs/revisions.md, as real git: where a run is, what happened there, and
what it must compare with. These are at a shell, and in any CI that has no host."""

import functools
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.e2e.revisions.server import World, in_job
from tests.support.git_repository import Checkout
from tunegate.artifacts.changes import Revisions
from tunegate.ci.protocol import AskedRevisions
from tunegate.system.git.repository import GitRepository

NO_CI: Mapping[str, str] = {}
SHELL = "a shell"


class Found(NamedTuple):
    """The revisions that are compared, and the commit that the base must be."""

    revisions: Revisions
    base: str | None


class Situation(NamedTuple):
    """`base` is what the page says of it."""

    where: str
    what: str
    base: str
    found: Callable[[World], Found]


SITUATIONS: list[Situation] = []
_Finder = Callable[[World], Found]


def added_to(
    listed: list[Situation], where: str, what: str, base: str
) -> Callable[[_Finder], _Finder]:
    def added(finder: _Finder) -> _Finder:
        listed.append(Situation(where, what, base, finder))
        return finder

    return added


situation = functools.partial(added_to, SITUATIONS)


def row_of(situation: Situation, world: World) -> str:
    """Returns the line of the page, and requires that the base is what it must be."""
    found = situation.found(world)
    assert found.revisions.base == found.base
    said = re.sub(r"\b[0-9a-f]{12}\b", "…", found.revisions.reason)
    return f"| {situation.where} | {situation.what} | {situation.base} | {said} |"


def shell(job: Checkout, base: str = "", head: str = "") -> Revisions:
    return in_job(NO_CI, job, AskedRevisions(base=base, head=head))


@situation(SHELL, "a branch; main has moved on", "where the branch left main")
def branch(world: World) -> Found:
    return Found(shell(world.cloned("--branch=topic")), world.at("at/left"))


@situation(SHELL, "the same with `--base origin/main`", "the same")
def base_is_a_branch(world: World) -> Found:
    return Found(shell(world.cloned("--branch=topic"), "origin/main"), world.at("at/left"))


@situation(SHELL, "the same with `--base main`, which the clone has too", "the same")
def base_is_a_branch_of_both(world: World) -> Found:
    return Found(shell(world.cloned("--branch=topic"), "main"), world.at("at/left"))


@situation(
    SHELL, "the same with a base that is one commit: an id, a tag, `main~0`", "that very commit"
)
def base_is_a_commit(world: World) -> Found:
    job = world.cloned("--branch=topic")
    assert shell(job, "origin/main~0").base == world.at("main")
    assert shell(job, "v1").base == world.at("v1")
    return Found(shell(job, world.at("main")), world.at("main"))


@situation(SHELL, "main itself, also with `--base main`", "its parent")
def main_itself(world: World) -> Found:
    job = world.cloned()
    assert shell(job, "main").base == shell(job).base
    return Found(shell(job), world.at("main~1"))


@situation(SHELL, "main, whose last commit is a merge", "its first parent, main before the merge")
def merge_on_main(world: World) -> Found:
    before = world.at("main")
    world.server.merge("topic")
    return Found(shell(world.cloned()), before)


@situation(SHELL, "the first commit of a repository", "none: every model counts as added")
def first_commit(world: World) -> Found:
    job = world.cloned()
    job.git("checkout", "-q", "--detach", world.at("at/start"))
    return Found(shell(job), None)


@situation(SHELL, "a branch in a clone of depth 1, or a detached head of it", "where it left main")
def depth_one(world: World) -> Found:
    other = World(world.server.path, world.directory / "again")
    detached = shell(other.shallow(world.at("topic")))
    job = world.cloned("--depth=1", "--branch=topic")
    assert detached.base == world.at("at/left")
    return Found(shell(job), world.at("at/left"))


@situation(
    SHELL,
    "a base and a head that a clone of depth 1 lacks, also as `HEAD~1`",
    "what was named, fetched",
)
def named_and_missing(world: World) -> Found:
    job = world.cloned("--depth=1")
    assert shell(job, "HEAD~1").base == world.at("main~1")
    start, topic = world.at("at/start"), world.at("topic")
    found = shell(job, start, topic)
    assert found.head == topic
    return Found(found, start)


@situation(SHELL, "a clone without blobs, or without trees", "where the branch left main")
def partial(world: World) -> Found:
    other = World(world.server.path, world.directory / "again")
    treeless = other.cloned("--filter=tree:0", "--branch=topic")
    assert len(GitRepository(treeless.path).files(shell(treeless).base or "")) == 2
    return Found(shell(world.cloned("--filter=blob:none", "--branch=topic")), world.at("at/left"))


@situation(SHELL, "no remote", "where the branch left `init.defaultBranch`, main or master")
def no_remote(world: World) -> Found:
    world.server.git("checkout", "-q", "topic")
    return Found(shell(world.server), world.at("at/left"))


@situation(SHELL, "a default branch of another name, that the clone was not told", "where it left")
def renamed(world: World) -> Found:
    world.server.git("branch", "-m", "main", "trunk")
    job = world.cloned("--branch=topic")
    job.git("remote", "set-head", "origin", "-d")
    return Found(shell(job), world.at("at/left"))


@situation(SHELL, "a remote of another name, and no other one", "where the branch left main")
def renamed_remote(world: World) -> Found:
    job = world.cloned("--branch=topic", "--origin=upstream")
    return Found(shell(job), world.at("at/left"))


@situation(
    SHELL,
    "a default branch that was renamed since the clone was made, and whose old name is still here",
    "where it left",
)
def renamed_since(world: World) -> Found:
    job = world.cloned("--branch=topic")
    world.server.git("branch", "-m", "main", "trunk")
    job.git("fetch", "-q")
    assert job.git("symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/main"
    return Found(shell(job), world.at("at/left"))


@situation(SHELL, "a worktree", "where its branch left main")
def worktree(world: World) -> Found:
    world.cloned().git("worktree", "add", "-q", "../beside", "topic")
    return Found(shell(Checkout(world.directory / "beside")), world.at("at/left"))


@situation(SHELL, "a submodule, named with `--repository`", "where its head left its own main")
def submodule(world: World) -> Found:
    outer = World(world.server.path, world.directory / "outer").server
    allowed = ("-c", "protocol.file.allow=always")
    outer.git(*allowed, "submodule", "add", "-q", world.server.path.as_uri(), "models")
    inner = Checkout(outer.path / "models")
    inner.git("checkout", "-q", "--detach", world.at("topic"))
    return Found(shell(inner), world.at("at/left"))
