"""The example examples/three-jobs.yml as GitHub runs it, on the merge commit of a pull request."""

import shutil
from pathlib import Path
from typing import Protocol

import pytest

from tests.e2e.workflows.pull_request import Files, PullRequest
from tests.e2e.workflows.workflow_runner import Job, Trouble
from tests.support.small_onnx import conv_model
from tests.support.workspace import FIRST_ANALYSIS, UNDECIDED_GATE, UNDECIDED_OBJECTIVE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
slow = pytest.mark.pipelines

MODELS = "models:\n  - path: models/*.onnx\n"
REST = """\
targets:
  - name: cpu
    runtime: tvm
    threads: 1
cache:
  mode: "off"
budget:
  trials: 4
"""
CONFIG = MODELS + REST + FIRST_ANALYSIS + "  margin-percent: 30\n"
UNDECIDED = MODELS + UNDECIDED_OBJECTIVE + REST + UNDECIDED_GATE


def model(*, out: int, size: int) -> bytes:
    return bytes(conv_model(channels=8, out=out, size=size).SerializeToString())


FASTER: Files = {"models/m.onnx": model(out=4, size=12)}
SLOWER: Files = {"models/m.onnx": model(out=64, size=40)}
OF_DOCS: Files = {"README.md": b"words\n"}


class Opened(Protocol):
    """Opens a pull request with this change, to a repository with this configuration."""

    def __call__(self, change: Files, config: str = CONFIG) -> PullRequest: ...


@pytest.fixture
def opened(tmp_path: Path, node_modules: Path) -> Opened:
    def open_one(change: Files, config: str = CONFIG) -> PullRequest:
        start = {"tunegate.yaml": config.encode(), "models/m.onnx": model(out=8, size=16)}
        return PullRequest(tmp_path, node_modules, start=start, change=change)

    return open_one


def results(jobs: dict[str, Job]) -> dict[str, str]:
    return {name: job.result for name, job in jobs.items()}


def verdict_of(job: Job) -> str:
    return str(job.legs[0].actions[0]["outputs"]["verdict"])


def test_a_change_of_docs_has_an_empty_matrix_and_passes_without_tuning(opened: Opened) -> None:
    jobs = opened(OF_DOCS).run("three-jobs.yml")
    expected = {"plan": "success", "tune": "skipped", "gate": "success", "required": "success"}
    assert results(jobs) == expected, jobs["gate"].log
    assert verdict_of(jobs["gate"]) == "pass"


def test_a_run_that_is_repeated_whole_reads_nothing_of_the_attempt_before(opened: Opened) -> None:
    """GitHub keeps the artifacts of each attempt, and the plan of another may have more shards."""

    def leave(job: str, artifacts: Path) -> None:
        for number in range(2):
            left = artifacts / f"tunegate-{number}-outcome-3"
            if job == "plan":
                left.mkdir(parents=True)
                (left / "outcome-3.json").write_text("{}")

    pull = opened(OF_DOCS)
    jobs = pull.run("three-jobs.yml", attempt=2, between=leave)
    assert jobs["required"].result == "success", jobs["gate"].log
    mixed = pull.run("three-jobs.yml", attempt=1, between=leave, into="mixed")
    assert mixed["gate"].legs[0].actions[0]["exitCode"] == 2, mixed["gate"].log


def test_a_run_that_somebody_cancels_is_not_gated_and_not_green(opened: Opened) -> None:
    jobs = opened(OF_DOCS).run("three-jobs.yml", Trouble(is_cancelled=True))
    assert (jobs["gate"].result, jobs["required"].result) == ("skipped", "failure")


@slow
def test_a_modified_model_is_planned_tuned_and_judged_in_fresh_checkouts(opened: Opened) -> None:
    jobs = opened(FASTER, UNDECIDED).run("three-jobs.yml")
    assert jobs["plan"].result == jobs["tune"].result == "success", results(jobs)
    assert verdict_of(jobs["gate"]) == "inconclusive", jobs["gate"].log
    assert "left no outcome" not in jobs["gate"].log


@slow
def test_a_private_repository_has_what_it_needs_in_its_checkout(opened: Opened) -> None:
    jobs = opened(FASTER, UNDECIDED).run("three-jobs.yml", is_private=True)
    assert verdict_of(jobs["gate"]) == "inconclusive", jobs["gate"].log


@slow
def test_a_slower_model_fails_the_gate_and_the_job_that_is_required(opened: Opened) -> None:
    jobs = opened(SLOWER).run("three-jobs.yml")
    assert verdict_of(jobs["gate"]) == "fail", jobs["gate"].log
    assert jobs["gate"].legs[0].actions[0]["exitCode"] == 1
    assert jobs["required"].result == "failure"


@slow
@pytest.mark.parametrize("how", ["lost", "cancelled"])
def test_a_shard_without_an_outcome_costs_its_tasks_only(how: str, opened: Opened) -> None:
    shards = [("tune", 0)]
    trouble = Trouble(lost=shards) if how == "lost" else Trouble(cancelled=shards)
    jobs = opened(SLOWER).run("three-jobs.yml", trouble)
    assert jobs["tune"].result == {"lost": "failure"}.get(how, how)
    assert verdict_of(jobs["gate"]) == "fail", jobs["gate"].log
    assert "left no outcome-0.json" in jobs["gate"].log


@slow
def test_a_plan_that_does_not_reach_the_later_jobs_is_exit_code_2(opened: Opened) -> None:
    def lose(job: str, artifacts: Path) -> None:
        if job == "gate":
            shutil.rmtree(artifacts)
            artifacts.mkdir()

    jobs = opened(FASTER).run("three-jobs.yml", between=lose)
    gate = jobs["gate"].legs[0].actions[0]
    assert (gate["exitCode"], gate["outputs"]["verdict"]) == (2, "error"), gate["log"]
    assert jobs["required"].result == "failure"
