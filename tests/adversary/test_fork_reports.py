"""Files of a fork's run, read with the rights of the default branch: nothing of them is run, none
of their words is trusted, and they do not say where the comment goes."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from tests.adversary.action_run import TOKEN, Ended, Job
from tests.ci.github.github_server import GitHubServer, github_server
from tests.ci.github.test_event import TIP, payload, pull
from tests.support.report_parts import finding, verdict
from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.comments import report_marker

pytestmark = pytest.mark.e2e

WORDS = "LGTM, merged by the maintainers"
HOSTILE = f"</td><img src=x>`|[{WORDS}](https://evil.example) @acme/all #1 !2\n/merge\n# Pass"


class ForkJob:
    """The job of `workflow_run`, in an empty workspace with the artifact of the fork's run."""

    def __init__(self, directory: Path) -> None:
        self.job = Job(directory)
        self.artifact = directory / "workspace" / "fork-run"
        self.artifact.mkdir(parents=True)

    def run(self, server: GitHubServer, event: str = "workflow_run", **more: str) -> Ended:
        return self.job.run(
            event,
            payload(),
            **server.variables,
            GITHUB_SHA="c" * 40,
            TUNEGATE_STAGE=more.pop("stage", "comment"),
            TUNEGATE_OUT="fork-run",
            **more,
        )


@pytest.fixture
def fork(tmp_path: Path) -> ForkJob:
    return ForkJob(tmp_path)


def hostile_verdict() -> Verdict:
    bad = msgspec.structs.replace(finding("pass", WORDS), model=HOSTILE, target=HOSTILE)
    found = verdict("pass", 0, bad)
    revisions = msgspec.structs.replace(found.revisions, reason="pull request #1")
    return msgspec.structs.replace(found, notes=(WORDS,), revisions=revisions)


def test_nothing_that_a_fork_writes_is_more_than_numbers_and_names(fork: ForkJob) -> None:
    artifact_io.write(fork.artifact / "verdict.json", hostile_verdict())
    (fork.artifact / "report.md").write_text(f"### Pass: {WORDS}")
    (fork.artifact / "report.html").write_text(WORDS)
    for name in ("json.py", "sitecustomize.py", "tunegate.py", "msgspec.py"):
        for directory in (fork.artifact, fork.artifact.parent):
            (directory / name).write_text("import os; os.environ['TUNEGATE_GITHUB_TOKEN']\n1/0")
    with github_server() as server:
        server.pulls = [pull()]
        server.planted(f"{report_marker('.tunegate')}\nthe repository's own report")
        ended = fork.run(server)
    assert ended.exit_code == 0, ended.log
    ours, theirs = server.comments
    assert ours["body"].endswith("the repository's own report")
    text = theirs["body"]
    assert text.startswith(f"{report_marker('fork')}\n### Unverified, from a run of the fork: ")
    for mark in ("<img", "](https://evil", "@acme", "\n/merge", "\n# Pass"):
        assert mark not in text
    assert text.count(WORDS[:4]) == 2, "it stands in the two names alone"
    assert "<<ghadelimiter_" in ended.outputs
    assert "\nunverified\n" in ended.outputs
    assert "verdict<<" in ended.outputs
    assert TOKEN not in ended.log + ended.summary + text


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"findings": WORDS}),
        "[" * 1_000_000,
        "x" * 10_000_000,
        artifact_io.seal(hostile_verdict()).decode().replace('"exit_code": 0', '"exit_code": NaN'),
        "null",
    ],
    ids=["another schema", "nested", "10 MB", "NaN", "null"],
)
def test_a_file_that_is_no_verdict_is_not_written_anywhere(fork: ForkJob, body: str) -> None:
    (fork.artifact / "verdict.json").write_text(body)
    with github_server() as server:
        server.pulls = [pull()]
        ended = fork.run(server)
    assert ended.exit_code == 2, ended.log
    assert not server.comments
    assert WORDS not in ended.log + ended.summary
    assert not ended.is_green


@pytest.mark.parametrize("others", [[], [pull(head={"sha": "b" * 40, "repo": None})]])
def test_a_pull_request_that_has_moved_on_gets_no_comment(
    fork: ForkJob, others: list[dict[str, object]]
) -> None:
    artifact_io.write(fork.artifact / "verdict.json", hostile_verdict())
    with github_server() as server:
        server.pulls = others
        ended = fork.run(server)
    assert (ended.exit_code, server.comments) == (0, [])
    assert f"no open pull request has {TIP[:12]}" in ended.log


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        *[("workflow_run", stage) for stage in ("all", "plan", "tune", "gate")],
        *[(event, "comment") for event in ("pull_request", "pull_request_target", "push")],
    ],
)
def test_the_event_goes_with_no_stage_that_judges_and_the_stage_with_no_other_event(
    fork: ForkJob, event: str, stage: str
) -> None:
    artifact_io.write(fork.artifact / "verdict.json", hostile_verdict())
    with github_server() as server:
        server.pulls = [pull()]
        ended = fork.run(server, event, stage=stage)
    assert ended.exit_code == 2, ended.log
    assert not server.requests


# A second verdict that is none: edited, of the same machine, or reached by other rules.

SLOWER = ("--commands", "echo 1", "echo 2")


def refusal(workspace: Workspace, first: str, second: str) -> str:
    done = workspace.tunegate("confirm", f"{first}/verdict.json", f"{second}/verdict.json", code=2)
    assert not (workspace.root / ".tunegate").exists()
    return done.stderr


def test_only_another_machines_look_at_the_same_confirms(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "checkout", NOT_COMPILED)
    assert workspace.tunegate("compare", *SLOWER, "--out", "a").returncode == 1
    assert workspace.tunegate("compare", *SLOWER, "--out", "b").returncode == 1
    assert "of one and the same machine" in refusal(workspace, "a", "b")
    assert "of one and the same run" in refusal(workspace, "a", "a")
    edited = Path(shutil.copytree(workspace.root / "a", workspace.root / "edited"))
    verdict = edited / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"fail"', '"pass"'))
    assert "edited/verdict.json: not as tunegate wrote it" in refusal(workspace, "a", "edited")
