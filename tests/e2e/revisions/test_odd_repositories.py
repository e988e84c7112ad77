"""Odd repositories: a run compares the right two commits, or it ends with one clear line. It never
says in green that nothing changed where something did."""

import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.revisions.server import World, in_job
from tests.support.git_repository import Checkout, clone
from tunegate.artifacts.changes import Revisions
from tunegate.ci.protocol import AskedRevisions
from tunegate.errors import TunegateError

MODEL = "m.onnx"


def compared(job: Checkout, base: str = "", head: str = "") -> Revisions:
    return in_job({}, job, AskedRevisions(base=base, head=head))


def differs(job: Checkout, found: Revisions) -> bool:
    """Returns True where the model of the topic is seen as changed between the two."""
    blobs = {
        job.git("--no-replace-objects", "rev-parse", f"{commit}:{MODEL}")
        for commit in (found.base, found.head)
    }
    return len(blobs) == 2


# compared -----------------------------------------------------------------------------


def octopus(world: World) -> tuple[Checkout, str]:
    """A merge of three branches onto main: its first parent is main before it."""
    before = world.at("main")
    for name in ("b", "c"):
        world.server.git("checkout", "-q", "-b", name, "at/left")
        world.server.commit({name: name.encode()})
    world.server.git("checkout", "-q", "main")
    world.server.git("merge", "-q", "-m", "octopus", "topic", "b", "c")
    return world.cloned("--depth=1"), before


def criss_cross(world: World) -> tuple[Checkout, str]:
    """Main and topic merged each other: main's merge, which has both merge bases."""
    taken = world.at("main")
    topic = world.at("topic")
    world.server.git("checkout", "-q", "topic")
    world.server.merge(taken)
    world.server.commit({MODEL: b"slower again" * 90})
    world.server.git("checkout", "-q", "main")
    world.server.merge(topic)
    return world.cloned("--branch=topic"), world.at("main")


def replaced(world: World) -> tuple[Checkout, str]:
    """A replace ref claims that the topic was branched off from its own model."""
    job = world.cloned("--branch=topic")
    job.git("replace", world.at("at/left"), world.at("topic~1"))
    return job, world.at("at/left")


def grafted(world: World) -> tuple[Checkout, str]:
    """A graft claims that main comes after the topic."""
    job = world.cloned("--branch=topic")
    grafts = job.path / ".git" / "info" / "grafts"
    grafts.write_text(f"{world.at('main')} {world.at('topic')}\n")
    return job, world.at("at/left")


def boundary(world: World) -> tuple[Checkout, str]:
    """A shallow clone that ends exactly at the merge base."""
    return world.cloned("--depth=3", "--no-single-branch", "--branch=topic"), world.at("at/left")


def deepest(world: World) -> tuple[Checkout, str]:
    """A shallow clone of depth 1 from a server that is itself shallow."""
    job = clone(
        world.server, world.directory / "mirror", "--mirror", "--depth=4", "--no-single-branch"
    )
    job.git("config", "uploadpack.allowAnySHA1InWant", "true")
    mirror = World.__new__(World)
    mirror.directory, mirror.server = world.directory, job
    return mirror.cloned("--depth=1", "--branch=topic"), world.at("at/left")


def forced_main(world: World) -> tuple[Checkout, str]:
    """Main was rewritten after the topic left it, to before that."""
    world.server.git("reset", "-q", "--hard", "at/release")
    world.server.commit({"readme": b"rewritten"})
    return world.cloned("--branch=topic"), world.at("at/release")


def merged_before(world: World) -> tuple[Checkout, str]:
    """The topic was merged once, and went on."""
    merged = world.at("topic")
    world.server.merge("topic")
    world.server.git("checkout", "-q", "topic")
    world.server.commit({MODEL: b"slower once more" * 90})
    world.server.git("checkout", "-q", "main")
    return world.cloned("--branch=topic"), merged


def tag_called_main(world: World) -> tuple[Checkout, str]:
    """A tag has the name of the default branch, and is of the topic."""
    world.server.git("tag", "main", "topic")
    return world.cloned("--branch=topic"), world.at("at/left")


def branch_called_head(world: World) -> tuple[Checkout, str]:
    """A branch of the remote is called HEAD."""
    world.server.git("update-ref", "refs/heads/HEAD", "topic")
    return world.cloned("--branch=topic"), world.at("at/left")


def no_fetch_rules(world: World) -> tuple[Checkout, str]:
    """A remote that is configured to fetch the topic alone."""
    return world.cloned("--single-branch", "--branch=topic", "--depth=1"), world.at("at/left")


def moved_git_dir(world: World) -> tuple[Checkout, str]:
    """A repository whose `.git` is elsewhere."""
    job = world.cloned("--branch=topic", f"--separate-git-dir={world.directory / 'elsewhere'}")
    return job, world.at("at/left")


def sha256(world: World) -> tuple[Checkout, str]:
    """A repository with ids of 64 digits."""
    shutil.rmtree(world.server.path)
    world.server.path.mkdir()
    made = world.server
    made.git("init", "-q", "--object-format=sha256", "--initial-branch=main")
    made.commit({MODEL: b"m"})
    made.git("checkout", "-q", "-b", "topic")
    made.commit({MODEL: b"slower"})
    made.git("checkout", "-q", "main")
    made.commit({"readme": b"moved"})
    return world.cloned("--branch=topic"), world.at("main~1")


@pytest.mark.parametrize(
    "odd",
    [
        octopus,
        criss_cross,
        replaced,
        grafted,
        boundary,
        deepest,
        forced_main,
        merged_before,
        tag_called_main,
        branch_called_head,
        no_fetch_rules,
        moved_git_dir,
        sha256,
    ],
)
def test_the_right_two_commits_are_compared(
    odd: Callable[[World], tuple[Checkout, str]], template: Path, tmp_path: Path
) -> None:
    job, base = odd(World(template, tmp_path))
    found = compared(job)
    assert (found.base, found.head) == (base, job.git("rev-parse", "HEAD"))
    assert differs(job, found)


# refused ------------------------------------------------------------------------------


def unrelated(world: World) -> Checkout:
    world.server.git("checkout", "-q", "--orphan", "other")
    world.server.commit({MODEL: b"other"})
    world.server.git("checkout", "-q", "main")
    return world.cloned("--branch=other")


def unrelated_and_shallow(world: World) -> Checkout:
    unrelated(World(world.server.path, world.directory / "made"))
    served = Checkout(world.directory / "made" / "server")
    return clone(served, world.directory / "job", "--branch=other", "--depth=1")


def no_usual_name(world: World) -> Checkout:
    world.server.git("branch", "-m", "main", "trunk")
    return world.server


def remote_gone(world: World) -> Checkout:
    job = world.shallow(world.at("topic"))
    world.server.path.rename(world.directory / "gone")
    return job


def parent_gone(world: World) -> Checkout:
    job = world.cloned("--depth=1")
    world.server.path.rename(world.directory / "gone")
    return job


def nothing_committed(world: World) -> Checkout:
    path = world.directory / "empty"
    path.mkdir()
    world.server.git("init", "-q", str(path))
    return Checkout(path)


def damaged(world: World, file: str) -> Checkout:
    job = world.cloned()
    (job.path / ".git" / file).write_text("[core\n")
    return job


def bare(world: World) -> Checkout:
    return world.cloned("--bare")


@pytest.mark.parametrize(
    ("odd", "exit_code", "line"),
    [
        (unrelated, 5, "no merge base with origin/main was found: nothing to compare with"),
        (unrelated_and_shallow, 5, "no merge base with origin/main was found: nothing to"),
        (no_usual_name, 2, "no branch is the default one: there is no remote"),
        (remote_gone, 4, "the default branch could not be fetched"),
        (parent_gone, 4, "' does not appear to be a git repository). Check out the whole history"),
        (nothing_committed, 2, "no commit yet. Commit models and configuration first."),
        (partial(damaged, file="config"), 2, "git cannot read it (bad config line 1 in file"),
        (partial(damaged, file="packed-refs"), 2, "git cannot read HEAD (unexpected line in"),
        (bare, 2, "not a git repository with a working tree"),
    ],
)
def test_what_cannot_be_compared_ends_with_one_line(
    odd: Callable[[World], Checkout], exit_code: int, line: str, template: Path, tmp_path: Path
) -> None:
    job = odd(World(template, tmp_path))
    with pytest.raises(TunegateError, match=re.escape(line)) as raised:
        compared(job)
    assert raised.value.exit_code == exit_code
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("base", ["feature", "origin/feature", "f" * 40, "abc1234", "v9"])
def test_a_base_that_was_deleted_is_no_pass(base: str, template: Path, tmp_path: Path) -> None:
    job = World(template, tmp_path).cloned("--branch=topic", "--depth=1")
    with pytest.raises(TunegateError, match=f'^--base: "{base}" is not a revision of') as raised:
        compared(job, base)
    assert raised.value.exit_code == 2


def test_a_checkout_of_another_user_is_one_line_that_says_what_to_run(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container of a job often has another user than the checkout."""
    world = World(template, tmp_path)
    job, left = world.cloned("--branch=topic"), world.at("at/left")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(TunegateError, match=r"git config --global --add safe\.directory") as raised:
        compared(job)
    assert raised.value.exit_code == 2
    home = Path(os.environ["HOME"])
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {job.path}\n")
    assert compared(job).base == left
