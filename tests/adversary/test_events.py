"""Events that mean no two commits, that contradict the checkout, or that have rights which a fork's
code must not get: none of them ends in a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversary.action_run import TOKEN, Job
from tests.ci.github.github_server import github_server
from tunegate.ci.comments import report_marker

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "event",
    ["pull_request_target", "workflow_run", "issue_comment", "invented"],
)
def test_an_event_that_is_not_of_a_pull_requests_own_code_is_refused(
    tmp_path: Path, event: str
) -> None:
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


def test_a_pull_request_is_judged_and_commented_on(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    with github_server() as server:
        ended = job.run(
            "pull_request", job.pull_request(), **server.variables, TUNEGATE_COMMENT="always"
        )
    assert ended.exit_code == 0, ended.log
    assert "\npass\n" in ended.outputs
    assert len(server.comments) == 1
    (check,) = server.checks
    assert (check["head_sha"], check["conclusion"]) == (job.tip, "neutral")


def test_a_pull_request_without_a_model_gets_no_comment_and_an_earlier_one_says_so(
    tmp_path: Path,
) -> None:
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
def test_a_checkout_that_is_not_of_the_pull_request_is_not_judged(
    tmp_path: Path, what: str
) -> None:
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


@pytest.mark.parametrize(
    "payload", ["{", [], {}, "[" * 100_000], ids=["no JSON", "a list", "empty", "nested"]
)
def test_an_event_that_cannot_be_read_is_not_judged(tmp_path: Path, payload: object) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    ended = job.run("pull_request", payload)
    assert ended.exit_code == 2, ended.log
    assert not ended.is_green


def test_a_push_of_other_commits_than_the_checkout_is_not_judged(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.start).git("fetch", "-q", "origin", job.base)
    ended = job.run("push", job.push(job.start, job.base))
    assert ended.exit_code == 2, ended.log
    assert f"{job.start[:12]} is checked out, and the event is about {job.base[:12]}" in ended.log
    assert not ended.is_green


def test_a_plan_of_another_commit_is_not_gated(tmp_path: Path) -> None:
    job = Job(tmp_path)
    workspace = job.checkout(job.merge)
    planned = job.run("pull_request", job.pull_request(), TUNEGATE_STAGE="plan")
    assert planned.exit_code == 0, planned.log
    workspace.git("fetch", "-q", "origin", job.base)
    workspace.git("checkout", "-q", job.base)
    ended = job.run("push", job.push(job.start, job.base), TUNEGATE_STAGE="gate")
    assert ended.exit_code == 2, ended.log
    assert "plan.json: made for" in ended.log
    assert not ended.is_green


def test_a_base_that_cannot_be_fetched_makes_no_model_new(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.merge)
    job.origin.path.rename(tmp_path / "gone")
    ended = job.run("pull_request", job.pull_request())
    assert ended.exit_code == 4, ended.log
    assert not ended.is_green


def test_what_is_judged_of_another_commit_is_not_written_on_the_pull_request(
    tmp_path: Path,
) -> None:
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
            "pull_request",
            job.pull_request(),
            GITHUB_API_URL=server.url,
            TUNEGATE_MINUTES="many",
        )
    assert ended.exit_code == 2, ended.log
    assert not ended.is_green
    assert not server.comments
    assert [each["conclusion"] for each in server.checks] == ["failure"]


def test_an_error_of_the_configuration_stands_at_its_line_and_shows_no_secret(
    tmp_path: Path,
) -> None:
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
