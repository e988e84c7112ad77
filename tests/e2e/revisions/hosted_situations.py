"""Lines of the table in docs/revisions.md that are jobs of a CI."""

from pathlib import Path

from tests.e2e.revisions.server import ZEROS, World, pull_request
from tests.e2e.revisions.situations import Found, situation
from tunegate.ci.job import job_revisions
from tunegate.ci.protocol import AskedRevisions, JobEvent, JobRequest, MergeBase

GITHUB, GITLAB, OTHER = "GitHub", "GitLab", "another CI"


# GitHub ------------------------------------------------------------------------------


@situation(GITHUB, "a pull request, its merge commit at depth 1", "main as it was merged onto")
def github_merge(world: World) -> Found:
    tip, head = world.at("main"), world.at("topic")
    job = world.shallow(world.merged_result())
    return Found(world.github(job, "pull_request", pull_request(tip, head)), tip)


@situation(GITHUB, "a pull request, its head checked out", "where it left its base branch")
def github_head(world: World) -> Found:
    tip, head = world.at("main"), world.at("topic")
    job = world.shallow(head)
    return Found(world.github(job, "pull_request", pull_request(tip, head)), world.at("at/left"))


@situation(GITHUB, "a merge queue, also one group after another", "what the group is merged onto")
def github_queue(world: World) -> Found:
    base = world.at("at/moved")
    job = world.shallow(world.at("main"))
    group = {"merge_group": {"base_sha": base, "head_sha": world.at("main")}}
    return Found(world.github(job, "merge_group", group), base)


@situation(GITHUB, "a push of several commits to main", "main before the push")
def github_push(world: World) -> Found:
    before, after = world.at("at/left"), world.at("main")
    push = {"ref": "refs/heads/main", "before": before, "after": after}
    return Found(world.github(world.shallow(after), "push", push), before)


@situation(GITHUB, "the first push of main (`000…`)", "none: every model counts as added")
def github_first_push(world: World) -> Found:
    after = world.at("main")
    push = {"ref": "refs/heads/main", "before": ZEROS, "after": after}
    return Found(world.github(world.shallow(after), "push", push), None)


@situation(
    GITHUB,
    "a push to another branch, the first (`000…`) or a later one",
    "where the branch left main",
)
def github_branch(world: World) -> Found:
    after = world.at("topic")
    job = world.shallow(after)
    push = {"ref": "refs/heads/topic", "before": ZEROS, "after": after}
    later = {**push, "before": world.at("topic~1")}
    assert world.github(job, "push", later).base == world.at("at/left")
    return Found(world.github(job, "push", push), world.at("at/left"))


@situation(GITHUB, "a schedule, or a start by hand on main", "its parent")
def github_schedule(world: World) -> Found:
    job = world.shallow(world.at("main"))
    by_hand = world.github(job, "workflow_dispatch", {})
    assert by_hand == world.github(job, "schedule", {})
    return Found(by_hand, world.at("main~1"))


@situation(GITHUB, "a start by hand on another branch", "where the branch left main")
def github_dispatch(world: World) -> Found:
    job = world.shallow(world.at("topic"))
    found = world.github(job, "workflow_dispatch", {}, ref="refs/heads/topic")
    return Found(found, world.at("at/left"))


@situation(GITHUB, "the input `base: main`", "where what is checked out left main")
def github_base(world: World) -> Found:
    tip, head = world.at("main"), world.at("topic")
    job = world.shallow(world.merged_result())
    request = pull_request(tip, head)
    return Found(world.github(job, "pull_request", request, asked=AskedRevisions(base="main")), tip)


# GitLab ------------------------------------------------------------------------------


@situation(GITLAB, "a merge request", "where it left its target branch")
def gitlab_request(world: World) -> Found:
    job = world.shallow(world.at("topic"))
    return Found(world.gitlab(job, "merge_request_event", **world.request()), world.at("at/left"))


@situation(GITLAB, "a merged result", "the target branch as it was merged onto")
def gitlab_merged(world: World) -> Found:
    tip = world.at("main")
    job = world.shallow(world.merged_result())
    onto = world.request(CI_MERGE_REQUEST_TARGET_BRANCH_SHA=tip)
    return Found(world.gitlab(job, "merge_request_event", **onto), tip)


@situation(GITLAB, "a merge train", "the merge request before it")
def gitlab_train(world: World) -> Found:
    world.server.git("branch", "earlier", "at/left")
    world.server.git("checkout", "-q", "earlier")
    world.server.commit({"e": b"earlier"}, "earlier")
    before = world.merged_result("earlier")
    world.server.git("checkout", "-q", "--detach", before)
    job = world.shallow(world.server.merge("topic"))
    world.server.git("checkout", "-q", "main")
    onto = world.request(CI_MERGE_REQUEST_TARGET_BRANCH_SHA=before)
    return Found(world.gitlab(job, "merge_request_event", **onto), before)


@situation(GITLAB, "a push of several commits to main", "main before the push")
def gitlab_push(world: World) -> Found:
    before = world.at("at/left")
    job = world.shallow(world.at("main"))
    push = {"CI_COMMIT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": before}
    return Found(world.gitlab(job, "push", **push), before)


@situation(GITLAB, "the first pipeline of main (`000…`)", "none: every model counts as added")
def gitlab_first(world: World) -> Found:
    job = world.shallow(world.at("main"))
    return Found(world.gitlab(job, "push", CI_COMMIT_BRANCH="main"), None)


@situation(
    GITLAB,
    "a pipeline of another branch, the first (`000…`) or a later one",
    "where the branch left main",
)
def gitlab_branch(world: World) -> Found:
    job = world.shallow(world.at("topic"))
    branch = {"CI_COMMIT_BRANCH": "topic"}
    later = world.gitlab(job, "push", **branch, CI_COMMIT_BEFORE_SHA=world.at("topic~1"))
    assert later.base == world.at("at/left")
    return Found(world.gitlab(job, "push", **branch), world.at("at/left"))


@situation(GITLAB, "a schedule, or a start by hand on main", "its parent")
def gitlab_schedule(world: World) -> Found:
    job = world.shallow(world.at("main"))
    by_hand = world.gitlab(job, "web", CI_COMMIT_BRANCH="main")
    assert by_hand == world.gitlab(job, "schedule", CI_COMMIT_BRANCH="main")
    return Found(by_hand, world.at("main~1"))


@situation(GITLAB, "a child pipeline of a merge request", "as the merge request's own")
def gitlab_child(world: World) -> Found:
    job = world.shallow(world.at("topic"))
    return Found(world.gitlab(job, "parent_pipeline", **world.request()), world.at("at/left"))


# other CIs -----------------------------------------------------------------------------


@situation(OTHER, "a target branch, such as Jenkins' `CHANGE_TARGET`", "where the change left it")
def target_branch(world: World) -> Found:
    job = world.shallow(world.at("topic"))
    event = JobEvent(revisions=MergeBase(target="main"), checked_out=world.at("topic"))
    request = JobRequest(words=("run",), step="run", out=Path(), repository=job.path)
    found = job_revisions(request, event)
    assert found is not None
    return Found(found, world.at("at/left"))
