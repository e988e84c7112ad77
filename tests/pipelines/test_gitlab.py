"""The component of GitLab, as gitlab-ci-local runs it in checkouts that a runner would make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ci.gitlab.gitlab_server import TOKEN, gitlab_server, merge_request
from tests.house.sources import ROOT
from tests.pipelines.gitlab_job import outcome, run_pipeline, runner_checkout, with_component
from tests.support.git_repository import Checkout
from tests.support.programs import require
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, UNDECIDED, Workspace

pytestmark = pytest.mark.pipelines

ZEROS = "0" * 40
QUICK = NOT_COMPILED + FIRST_ANALYSIS
ON_MAIN = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
REQUEST = merge_request(CI_COMMIT_BRANCH="")


class Project:
    """A project with a model on main, whose pipelines run in checkouts of a runner."""

    def __init__(self, directory: Path, tools: Path, config: str = QUICK, inputs: str = "") -> None:
        require("rsync")
        self.directory, self.tools, self.jobs = directory, tools, 0
        with_component(Workspace(directory / "origin", config).root, inputs)
        self.origin = Checkout(directory / "origin")
        self.origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.commit("component")

    def commit(self, message: str) -> str:
        return self.origin.commit({}, message)

    def model(self, *, size: int = 14, seed: int = 0) -> str:
        path = self.origin.path / "models" / "m.onnx"
        save(conv_model(channels=16, out=32, size=size, seed=seed), path)
        return self.commit("model")

    def run(self, commit: str, **variables: str) -> Ran:
        self.jobs += 1
        checkout = runner_checkout(self.origin, self.directory / f"job{self.jobs}", commit)
        return Ran(checkout.path, run_pipeline(self.tools, checkout.path, variables))


class Ran:
    """The end of a pipeline: the outcome of its job, the log and the files."""

    def __init__(self, checkout: Path, log: str) -> None:
        self.outcome, self.log, self.out = outcome(log), log, checkout / ".tunegate"

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "verdict.json").read_text())
        return found


@pytest.fixture
def project(tmp_path: Path, npm_tools: Path) -> Project:
    return Project(tmp_path, npm_tools)


def test_a_first_pipeline_has_nothing_to_compare_with_and_passes(project: Project) -> None:
    project.origin.git("checkout", "-q", "--orphan", "fresh")
    head = project.commit("all")
    project.origin.git("branch", "-f", "main", "fresh")
    push = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BEFORE_SHA": ZEROS, **ON_MAIN}
    ran = project.run(head, **push)
    assert (ran.outcome, ran.verdict["status"]) == ("PASS", "new"), ran.log
    assert (ran.out / "junit.xml").is_file()
    assert "TUNEGATE_VERDICT=new\n" in (ran.out / "ci-outputs.env").read_text()


def test_a_request_that_slows_a_model_fails_and_its_note_is_updated(project: Project) -> None:
    project.origin.git("checkout", "-q", "-b", "topic")
    head = project.model(size=42)
    with gitlab_server() as server:
        told = {"CI_API_V4_URL": server.url, "TUNEGATE_GITLAB_TOKEN": TOKEN}
        first = project.run(head, **REQUEST, **told)
        second = project.run(head, **REQUEST, **told)
        assert len(server.notes) == 1
        assert "PUT" in "".join(server.requests)
    assert (first.outcome, first.verdict["status"]) == ("FAIL 1", "fail"), first.log
    assert second.outcome == "FAIL 1"
    assert TOKEN not in first.log


def test_a_request_on_a_long_branch_is_compared_with_where_it_left_main(project: Project) -> None:
    """The runner has 20 commits; the base is the 31st, and main has moved on since."""
    left = project.origin.git("rev-parse", "HEAD")
    project.origin.git("checkout", "-q", "-b", "topic")
    for number in range(30):
        project.commit(f"step {number}")
    head = project.model(seed=9)
    project.origin.git("checkout", "-q", "main")
    project.model(size=42)
    ran = project.run(head, **REQUEST)
    assert ran.outcome != "no job", ran.log
    assert ran.verdict["revisions"]["base"] == left


def test_a_merge_train_is_compared_with_the_merge_request_before(project: Project) -> None:
    before = project.model(size=42)
    project.origin.git("checkout", "-q", "-b", "topic", "HEAD~1")
    project.origin.commit({"readme": b"x"})
    project.origin.git("checkout", "-q", "-b", "train", before)
    head = project.origin.merge("topic")
    onto = {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": before}
    ran = project.run(head, **REQUEST, **onto, CI_MERGE_REQUEST_EVENT_TYPE="merge_train")
    assert (ran.outcome, ran.verdict["findings"]) == ("PASS", []), ran.log
    assert ran.verdict["revisions"]["base"] == before


def test_a_schedule_judges_the_last_commit_of_main(project: Project) -> None:
    head = project.origin.commit({"readme": b"x"})
    ran = project.run(head, CI_PIPELINE_SOURCE="schedule", **ON_MAIN)
    assert (ran.outcome, ran.verdict["status"]) == ("PASS", "pass"), ran.log
    assert ran.verdict["revisions"]["base"] == project.origin.git("rev-parse", "HEAD~1")


def test_a_tag_is_compared_with_the_release_before(tmp_path: Path, npm_tools: Path) -> None:
    rules = 'options: --since-release, rules: [{if: "$CI_COMMIT_TAG"}]'
    project = Project(tmp_path, npm_tools, inputs=rules)
    project.origin.git("tag", "v1")
    head = project.origin.commit({"readme": b"x"})
    project.origin.git("tag", "v2")
    of_tag = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_BRANCH": "", "CI_COMMIT_TAG": "v2"}
    ran = project.run(head, **of_tag, CI_COMMIT_BEFORE_SHA=ZEROS)
    assert ran.outcome == "PASS", ran.log
    assert ran.verdict["revisions"]["release"] == "v1"


@pytest.mark.parametrize(("inputs", "ended"), [("", "FAIL 3"), ("inconclusive: warn", "WARN 3")])
def test_an_undecided_gate_fails_unless_the_job_lets_it_warn(
    tmp_path: Path, npm_tools: Path, inputs: str, ended: str
) -> None:
    project = Project(tmp_path, npm_tools, UNDECIDED, inputs)
    project.origin.git("checkout", "-q", "-b", "topic")
    ran = project.run(project.model(seed=9), **REQUEST)
    assert (ran.outcome, ran.verdict["exit_code"]) == (ended, 3), ran.log


def test_a_push_to_a_branch_of_its_own_starts_no_job(project: Project) -> None:
    head = project.origin.commit({"readme": b"x"})
    branch = {"CI_COMMIT_BRANCH": "topic", "CI_DEFAULT_BRANCH": "main"}
    ran = project.run(head, CI_PIPELINE_SOURCE="push", **branch)
    assert (ran.outcome, ran.out.exists()) == ("no job", False), ran.log


def test_the_job_installs_what_it_is_told_and_leaves_no_file_outside(
    tmp_path: Path, npm_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the checkout that is called as one of Python's is not imported."""
    left = tmp_path / "temporary"
    left.mkdir()
    monkeypatch.setenv("TMPDIR", str(left))
    project = Project(tmp_path, npm_tools, inputs=f'install: "{ROOT}", oidc: true')
    traps = {f"{name}.py": b"raise SystemExit('imported')" for name in ("venv", "pip", "json")}
    head = project.origin.commit(traps)
    job = {"CI_PIPELINE_SOURCE": "schedule", "TUNEGATE_ID_TOKEN": "header.claims.signature"}
    ran = project.run(head, **job, **ON_MAIN)
    assert (ran.outcome, ran.verdict["status"]) == ("PASS", "pass"), ran.log
    assert "header.claims" not in ran.log
    assert not list(left.glob("tunegate-*"))
