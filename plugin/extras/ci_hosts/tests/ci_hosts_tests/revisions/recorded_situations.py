"""Lines of the table in this extra's README that are jobs of CIs with recorded environments."""

from __future__ import annotations

from functools import partial

from tests.e2e.revisions.server import World, in_job
from tests.e2e.revisions.situations import Found, Situation, added_to
from tests.support.git_repository import Checkout

from ci_hosts_tests.recorded_environment import recorded_environment
from tunegate.artifacts.changes import Revisions

RECORDED: list[Situation] = []
situation = partial(added_to, RECORDED)
BUILDKITE, AZURE, CIRCLECI, BITBUCKET = "Buildkite", "Azure", "CircleCI", "Bitbucket"
LEFT, PARENT = "where it left its target branch", "its parent"


def compared(dump: str, job: Checkout, head: str, before: str = "", **more: str) -> Revisions:
    """Returns the revisions of a job whose recorded environment is about this head."""
    merge = job.git("rev-parse", "HEAD")
    environment = recorded_environment(dump, head=head, merge=merge, before=before)
    return in_job({**environment, **more}, job, None)


@situation(BUILDKITE, "a pull request, also with its merge checked out", LEFT)
def buildkite_request(world: World) -> Found:
    head, tip = world.at("topic"), world.at("main")
    merged = World(world.server.path, world.directory / "again")
    with_merge = compared("buildkite-pull-request", merged.shallow(merged.merged_result()), head)
    assert with_merge.base == tip
    found = compared("buildkite-pull-request", world.shallow(head), head)
    return Found(found, world.at("at/left"))


@situation(BUILDKITE, "a merge queue", "what the queue merges onto")
def buildkite_queue(world: World) -> Found:
    base, head = world.at("at/moved"), world.at("main")
    queue = {"BUILDKITE_MERGE_QUEUE_BASE_COMMIT": base}
    return Found(compared("buildkite-branch", world.shallow(head), head, **queue), base)


@situation(BUILDKITE, "a build of main, also one that was started without a commit", PARENT)
def buildkite_main(world: World) -> Found:
    head = world.at("main")
    job = world.shallow(head)
    assert compared("buildkite-branch", job, "HEAD") == compared("buildkite-branch", job, head)
    return Found(compared("buildkite-branch", job, head), world.at("main~1"))


@situation(BUILDKITE, "a build of another branch", "where the branch left main")
def buildkite_branch(world: World) -> Found:
    head = world.at("topic")
    found = compared("buildkite-branch", world.shallow(head), head, BUILDKITE_BRANCH="topic")
    return Found(found, world.at("at/left"))


@situation(AZURE, "a pull request, its merge commit at depth 1", "main as it was merged onto")
def azure_request(world: World) -> Found:
    head, tip = world.at("topic"), world.at("main")
    job = world.shallow(world.merged_result())
    return Found(compared("azure-pull-request", job, head), tip)


@situation(AZURE, "a push to main, or a schedule", PARENT)
def azure_main(world: World) -> Found:
    head = world.at("main")
    return Found(compared("azure-branch", world.shallow(head), head), world.at("main~1"))


@situation(CIRCLECI, "a pull request of unknown target", "where it left main")
def circleci_request(world: World) -> Found:
    head = world.at("topic")
    found = compared("circleci-pull-request", world.shallow(head), head)
    return Found(found, world.at("at/left"))


@situation(CIRCLECI, "a push of several commits to main", "main before the push")
def circleci_main(world: World) -> Found:
    before, head = world.at("at/left"), world.at("main")
    return Found(compared("circleci-branch", world.shallow(head), head, before), before)


@situation(BITBUCKET, "a pull request with main merged into it", "main as it was merged")
def bitbucket_request(world: World) -> Found:
    head, tip = world.at("topic"), world.at("main")
    world.server.git("checkout", "-q", "--detach", head)
    job = world.shallow(world.server.merge("main"))
    return Found(compared("bitbucket-pull-request", job, head), tip)


@situation(BITBUCKET, "a pipeline of main", PARENT)
def bitbucket_main(world: World) -> Found:
    head = world.at("main")
    return Found(compared("bitbucket-branch", world.shallow(head), head), world.at("main~1"))
