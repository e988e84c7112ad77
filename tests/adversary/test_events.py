"""Events that mean no two commits, that contradict the checkout, or that have rights which a fork's
code must not get: none of them ends in a verdict."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.adversary.action_run import TOKEN, Job
from tests.adversary.pull_request import PullRequest
from tests.ci.github.github_server import github_server
from tests.support.outcome_parts import outcome
from tests.support.small_onnx import chain_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.artifact_io import read, write
from tunegate.artifacts.plans import TuningPlan
from tunegate.ci.comments import report_marker
from tunegate.system.output.artifact_file import ArtifactFile

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "event", ["pull_request_target", "workflow_run", "issue_comment", "invented"]
)
def test_an_event_not_of_a_pull_requests_code_is_refused(tmp_path: Path, event: str) -> None:
    job = Job(tmp_path)
    job.checkout(job.base)
    with github_server() as server:
        ended = job.run(event, job.pull_request(), GITHUB_SHA=job.base, GITHUB_API_URL=server.url)
    assert ended.exit_code == 2, ended.log
    assert not ended.is_green
    assert not server.requests
    assert "::error title=tunegate::" in ended.log
    assert "no verdict" in ended.summary
    assert not (tmp_path / "workspace" / ".tunegate").exists()


def test_each_job_of_a_pull_request_keeps_a_comment_that_names_its_target(tmp_path: Path) -> None:
    """Also where the server tells no token whose it is, as Gitea. Then the pull request gets
    another target."""
    job = Job(tmp_path)
    workspace = job.checkout(job.merge)
    with github_server() as server:
        server.answers |= {"GET /user": (403, {}), "POST /graphql": (404, {})}

        def judged(name: str, base: str, target: str) -> str:
            payload = job.pull_request(base={"sha": base, "ref": target})
            asked = {"GITHUB_JOB": name, "TUNEGATE_COMMENT": "always"}
            ended = job.run("pull_request", payload, **server.variables, **asked)
            assert ended.exit_code == 0, ended.log
            assert "\npass\n" in ended.outputs
            return ended.log

        assert "(pull request into main: " in judged("gate", job.base, "main")
        judged("gate-gpu", job.base, "main")
        (check, _) = server.checks
        assert (check["head_sha"], check["conclusion"]) == (job.tip, "neutral")

        job.origin.git("switch", "-q", "-c", "retargeted", job.start)
        workspace.git("fetch", "-q", "--depth=1", "origin", merge := job.origin.merge("topic"))
        workspace.git("checkout", "-q", "--detach", merge)
        log = judged("gate", job.start, "release")
    assert f"base {job.start} (pull request into release: " in log
    bodies = [each["body"] for each in server.comments]
    expected = [(True, True), (False, False)]
    assert [("`gate`" in body, job.start[:7] in body) for body in bodies] == expected


def test_without_a_model_there_is_no_comment_and_an_earlier_one_says_so(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    with github_server() as server:
        ended = job.run("pull_request", job.pull_request(), **server.variables)
        assert not server.comments
        server.planted(f"{report_marker('.tunegate')}\n### Fail")
        job.run("pull_request", job.pull_request(), **server.variables)
    assert ended.exit_code == 0, ended.log
    (comment,) = server.comments
    assert "No configured model changes any more" in comment["body"]


@pytest.mark.parametrize("what", ["base", "merge of another base", "the tip's parent"])
def test_a_checkout_not_of_the_pull_request_is_not_judged(tmp_path: Path, what: str) -> None:
    job = Job(tmp_path)
    payload = job.pull_request()
    checked_out = job.base if what == "base" else job.merge
    if what == "merge of another base":
        payload = job.pull_request(base={"sha": job.origin.commit({"later": b"later"})})
    if what == "the tip's parent":
        payload["pull_request"]["head"]["sha"] = job.origin.commit({"pushed": b"after"})
    job.checkout(checked_out)
    with github_server() as server:
        ended = job.run("pull_request", payload, GITHUB_API_URL=server.url)
    assert ended.exit_code == 2, ended.log
    assert not ended.is_green
    assert not server.requests


def test_a_push_of_other_commits_than_the_checkout_is_not_judged(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.start).git("fetch", "-q", "origin", job.base)
    ended = job.run("push", job.push(job.start, job.base))
    assert ended.exit_code == 2, ended.log
    assert f"{job.start[:12]} is checked out, and the event is about {job.base[:12]}" in ended.log
    assert not ended.is_green


def test_a_base_that_cannot_be_fetched_makes_no_model_new(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    job.origin.path.rename(tmp_path / "gone")
    ended = job.run("pull_request", job.pull_request())
    assert ended.exit_code == 4, ended.log
    assert not ended.is_green


def test_a_verdict_of_another_commit_is_not_written_on_the_pull_request(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.base)
    given = {"TUNEGATE_BASE": job.start, "TUNEGATE_HEAD": job.base}
    with github_server() as server:
        ended = job.run(
            "pull_request_target", job.pull_request(), GITHUB_API_URL=server.url, **given
        )
    assert ended.exit_code == 0, ended.log
    assert not server.requests


def test_a_report_of_an_earlier_run_is_not_this_runs(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    assert job.run("pull_request", job.pull_request()).exit_code == 0
    for name in ("summary", "output"):
        job.file(name).write_text("")
    with github_server() as server:
        ended = job.run(
            "pull_request", job.pull_request(), GITHUB_API_URL=server.url, TUNEGATE_MINUTES="many"
        )
    assert ended.exit_code == 2, ended.log
    assert not ended.is_green
    assert not server.comments
    assert [each["conclusion"] for each in server.checks] == ["failure"]


def test_an_error_of_the_configuration_has_its_line_and_shows_no_secret(tmp_path: Path) -> None:
    job = Job(tmp_path)
    config = f"models:\n  - path: '*.onnx'\ncache:\n  url: https://x:{TOKEN}@host/{TOKEN}\n"
    job.origin.git("switch", "-q", "-c", "broken")
    commit = job.origin.commit({"tunegate.yaml": config.encode()})
    job.checkout(commit)
    ended = job.run("push", job.push(job.base, commit, "refs/heads/broken"))
    assert ended.exit_code == 2
    assert "::error file=tunegate.yaml,line=4,title=tunegate::" in ended.log
    assert "exit code 2" in ended.summary
    assert "cache.url" in ended.summary
    shown = [line for line in ended.log.splitlines() if line.startswith("::error")]
    assert TOKEN not in ended.summary + "".join(shown)


# What one job hands to the next: of other commits, of another configuration, edited, or made up.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is twice as slow, as the job that plans leaves it."""
    pull_request = PullRequest(tmp_path_factory.mktemp("made"))
    pull_request.make_twice_as_slow()
    pull_request.workspace.commit()
    pull_request.workspace.tunegate("plan", "--base", "main", code=0)
    return pull_request.root


@pytest.fixture
def planned(made: Path, tmp_path: Path) -> Workspace:
    return Workspace.copied(made, tmp_path / "checkout")


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def refusal(workspace: Workspace) -> str:
    done = workspace.tunegate("gate", code=2)
    assert not (workspace.root / ".tunegate" / "verdict.json").exists()
    return done.stderr


def test_a_plan_of_the_commit_before_is_not_gated(planned: Workspace) -> None:
    planned.write("README.md", "another commit")
    planned.commit()
    assert "plan.json: made for head" in refusal(planned)
    assert "plan.json: made for head" in planned.tunegate("tune", code=2).stderr


def test_a_plan_without_the_slow_model_is_not_gated(planned: Workspace) -> None:
    path = planned.root / ".tunegate" / "plan.json"
    edit(path, lambda plan: plan["changes"].update(models=[]))
    assert "plan.json: not as tunegate wrote it" in refusal(planned)


def test_a_forged_plan_is_held_against_git(planned: Workspace) -> None:
    """Made by somebody who computes the digests, too."""
    path = planned.root / ".tunegate" / "plan.json"
    plan = read(path, TuningPlan)
    (change,) = plan.changes.models
    unmeasured = replace(change, kind="renamed", change=None)
    write(path, replace(plan, changes=replace(plan.changes, models=(unmeasured,))))
    assert "not of the models that differ between its revisions" in refusal(planned)


def test_an_outcome_of_another_plan_is_not_gated(planned: Workspace) -> None:
    path = planned.root / ".tunegate" / "outcome-0.json"
    write(path, outcome(plan="a" * 64))
    assert "outcome-0.json: not of a shard of" in refusal(planned)
    edit(path, lambda found: found.update(plan="b" * 64))
    assert "outcome-0.json: not as tunegate wrote it" in refusal(planned)


def test_another_configuration_than_the_plans_is_not_gated(planned: Workspace) -> None:
    config = planned.root / "tunegate.yaml"
    config.write_text(config.read_text().replace("pairs: 4", "pairs: 4\n  size-margin-percent: 1"))
    assert "made with another configuration" in refusal(planned)


def test_an_artifact_whose_library_was_exchanged_is_not_loaded(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "checkout")
    for name in ("production", "new"):
        at = workspace.root / name
        at.mkdir()
        save(chain_model(layers=2, width=16), at / "model.onnx")
        file = "model.onnx"
        ArtifactFile(runtime="onnxruntime", file=file, inputs=(), outputs=(), threads=1).write(at)
    save(chain_model(layers=1, width=16), workspace.root / "new" / "model.onnx")
    done = workspace.tunegate("compare", "production", "new", code=2)
    assert "model.onnx: not the file that" in done.stderr
    assert not (workspace.root / ".tunegate").exists()
