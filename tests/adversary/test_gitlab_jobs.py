"""Jobs of GitLab: which two commits each compares, what is refused, and what a merge request
must not reach by its names, its variables and its checkout."""

import json
from pathlib import Path

import pytest

from tests.adversary.gitlab_run import JOB_TOKEN, GitLabJob
from tests.ci.gitlab.gitlab_server import TOKEN, gitlab_server

pytestmark = pytest.mark.e2e


@pytest.fixture
def job(tmp_path: Path) -> GitLabJob:
    return GitLabJob(tmp_path)


def compared(job: GitLabJob) -> tuple[str | None, str, str]:
    """Base, head and the commit whose rules judge."""
    found = json.loads((job.root / ".tunegate" / "verdict.json").read_text())["revisions"]
    return found["base"], found["head"], found.get("policy") or found["base"]


def test_a_merge_request_is_judged_and_its_one_note_is_replaced(job: GitLabJob) -> None:
    at = job.job
    job.job.checkout(at.tip)
    with gitlab_server() as server:
        for _ in range(2):
            job.run(job.request(at.tip), api=server.url, code=0)
        (note,) = server.notes
    assert compared(job) == (at.start, at.tip, at.base)
    assert "Pass" in note["body"]
    assert "[This run](https://gitlab.example/acme/models/-/jobs/9)" in note["body"]
    assert "TUNEGATE_VERDICT=pass\n" in job.files["ci-outputs.env"]
    assert "/artifacts/file/.tunegate/report.html" in job.files["ci-links.json"]


def test_a_fork_reads_the_cache_and_writes_nothing_to_it(job: GitLabJob) -> None:
    at = job.job
    at.checkout(at.tip)
    job.run(job.request(at.tip, CI_MERGE_REQUEST_SOURCE_PROJECT_ID="66"), code=0)
    assert not (job.root / "cache").exists()


@pytest.mark.parametrize("source", ["chat", "external", "external_pull_request_event", "new", ""])
def test_a_pipeline_that_names_no_two_commits_is_refused(job: GitLabJob, source: str) -> None:
    at = job.job
    at.checkout(at.tip)
    with gitlab_server() as server:
        done = job.run(job.request(at.tip, CI_PIPELINE_SOURCE=source), api=server.url)
        assert (done.returncode, server.requests) == (2, [])
    assert done.stderr.startswith("tunegate: error: ")
    assert not (job.root / ".tunegate").exists()


def test_a_checkout_of_another_commit_is_not_judged(job: GitLabJob) -> None:
    at = job.job
    at.checkout(at.base)
    with gitlab_server() as server:
        done = job.run(job.request(at.tip), api=server.url)
        assert (done.returncode, server.requests) == (2, [])
    assert "the event is about" in done.stderr


def test_a_target_branch_that_cannot_be_fetched_makes_no_model_new(job: GitLabJob) -> None:
    at = job.job
    at.checkout(at.tip)
    job.run(job.request(at.tip, CI_MERGE_REQUEST_TARGET_BRANCH_NAME="gone"), code=4)


def test_a_verdict_of_another_commit_is_not_written_on_the_merge_request(job: GitLabJob) -> None:
    at = job.job
    at.checkout(at.base)
    with gitlab_server() as server:
        words = ("run", "--base", at.start, "--head", at.base)
        done = job.run(job.request(at.tip), *words, api=server.url)
        assert (done.returncode, server.requests) == (0, [])


def test_an_api_that_refuses_changes_no_verdict_and_shows_no_secret(job: GitLabJob) -> None:
    at = job.job
    at.checkout(at.tip)
    with gitlab_server() as server:
        variables = job.request(at.tip, TUNEGATE_GITLAB_TOKEN="glpat-another-9876543210")
        done = job.run(variables, api=server.url)
        assert (done.returncode, server.notes) == (0, [])
    assert "no comment: notice: GitLab answered 401" in done.stderr
    assert "glpat" not in done.stdout + done.stderr


def test_no_token_is_in_the_log_the_files_or_the_note(job: GitLabJob) -> None:
    at = job.job
    at.origin.git("switch", "-q", "-c", "leaking", at.tip)
    config = f"models:\n  - path: '*.onnx'\ncache:\n  url: https://x:{TOKEN}@h/{JOB_TOKEN}\n"
    commit = at.origin.commit({"tunegate.yaml": config.encode()})
    at.checkout(commit)
    with gitlab_server() as server:
        done = job.run(job.request(commit), api=server.url)
        said = done.stdout + done.stderr + "".join(map(str, [*job.files.values(), server.notes]))
    assert done.returncode == 2
    assert TOKEN not in said
    assert JOB_TOKEN not in said


def test_a_models_name_is_no_command_of_a_note(job: GitLabJob) -> None:
    at = job.job
    name = "models/\n/merge\n/approve @all.onnx"
    at.origin.git("switch", "-q", "-c", "odd", at.tip)
    model = at.origin.path.joinpath("models/m.onnx").read_bytes()
    commit = at.origin.commit({name: model, "tunegate.yaml": None})
    at.checkout(commit)
    with gitlab_server() as server:
        done = job.run(job.request(commit), api=server.url)
        assert not any("\n/" in note["body"] for note in server.notes), done.stderr
    assert "\n/merge" not in done.stderr
