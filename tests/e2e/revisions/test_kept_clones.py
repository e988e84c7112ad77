"""Old clones and kept workspaces: the command follows the remote of today, or says what is old."""

import json
from pathlib import Path

import pytest

from tests.e2e.revisions.server import World
from tests.support.git_repository import Checkout
from tunegate.cli.main import main

CONFIG = "models: [{path: m.onnx}]\n"


@pytest.fixture
def world(template: Path, tmp_path: Path) -> World:
    (tmp_path / "trusted.yaml").write_text(CONFIG)
    return World(template, tmp_path)


def compared(
    job: Checkout, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[int, str, str]:
    """Returns the exit code, and the base with the reason for it, or the error."""
    place = ("--repository", str(job.path), "--config", str(job.path.parent / "trusted.yaml"))
    code = main(["detect", "--json", *place, *options])
    shown = capsys.readouterr()
    if code:
        return code, "", shown.err
    revisions = json.loads(shown.out)["revisions"]
    return code, revisions["base"], revisions["reason"]


def test_a_branch_that_the_remote_renamed_or_lost_is_not_compared_with(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.server.git("branch", "-m", "main", "master")
    job = world.cloned("--branch=topic")
    world.server.git("branch", "-m", "master", "main")
    job.git("fetch", "-q")
    assert job.git("symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/master"
    left = world.at("at/left")
    assert compared(job, capsys) == (0, left, "merge base with origin/main")
    code, _, error = compared(job, capsys, "--base", "origin/master")
    assert (code, error.count("\n")) == (2, 1)
    assert 'the remote has no branch "master" any more, and the one here is old. Name a' in error
    moved = world.server.commit({"m.onnx": b"of today"})
    world.server.git("branch", "-f", "topic", moved)
    job.git("fetch", "-q", "origin", moved)
    job.git("checkout", "-q", "--detach", moved)
    assert compared(job, capsys, "--base", "origin/main")[1] == world.at("main~1")
    world.server.path.rename(world.directory / "out of reach")
    code, _, error = compared(job, capsys)
    assert (code, error.count("\n")) == (4, 1)
    assert "origin/master or origin/main may be the default branch. Name it with --base" in error


@pytest.mark.parametrize("options", [(), ("--base", "main"), ("--base", "origin/main")])
def test_a_branch_is_that_of_today_or_told_to_be_old(
    world: World, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    """A whole clone gets contents, too: a filter would make it a partial one for good."""
    job = world.cloned("--branch=topic")
    tips = [world.server.commit({"m.onnx": b"of today"}), world.server.commit({"m.onnx": b"later"})]
    job.git("fetch", "-q", "origin", tips[1])
    world.server.git("reset", "-q", "--hard", tips[0])
    job.git("checkout", "-q", "--detach", tips[1])
    job.commit({"m.onnx": b"mine"})
    code, base, reason = compared(job, capsys, *options)
    assert (code, base) == (0, tips[0])
    assert reason.endswith("merge base with origin/main")
    assert "promisor" not in job.git("config", "--list")
    world.server.git("reset", "-q", "--hard", tips[1])
    old = f"{reason}, as this clone has it: the remote did not give it now"
    lock = job.path / ".git/refs/remotes/origin/main.lock"  # a git that was killed left it
    lock.touch()
    assert compared(job, capsys, *options) == (0, tips[0], old)
    lock.unlink()
    world.server.path.rename(world.directory / "out of reach")
    assert compared(job, capsys, *options) == (0, tips[0], old)


def test_tags_are_those_that_the_remote_has_now_or_their_doubt_is_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def since_release() -> str:
        code, _, told = compared(job, capsys, "--since-release")
        return told if code == 0 else f"exit code {code}"

    job = world.shallow(world.at("main"))
    assert since_release() == "everything since release v1"
    # Made last, these are older: a hotfix, a candidate, an old commit that is tagged again.
    world.server.git("tag", "v2", "at/moved")
    world.server.git("tag", "v3.0.0-rc.1", "at/moved")
    world.server.git("tag", "-a", "-m", "hotfix", "v1.0.1", "at/left")
    world.server.git("tag", "v0.9", "at/moved")
    assert since_release() == "everything since release v2"
    world.server.git("tag", "-f", "v1", "at/start")
    here = "everything since release v2, by the tags that are here: the remote "
    assert since_release() == f"{here}has moved v1"
    world.server.git("tag", "-d", "v2")
    assert since_release() == "everything since release v2, a tag that the remote does not have"
    world.server.path.rename(world.directory / "out of reach")
    assert since_release() == f"{here}did not answer"
