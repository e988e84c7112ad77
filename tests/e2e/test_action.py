"""The real action.yml, run as a runner would run it, from another repository's checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.action_runner import ROOT, Event, run_action
from tests.support.programs import run_program
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import COMPILED, FIRST_ANALYSIS, NOT_COMPILED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

# The stages are the same whatever builds, and ONNX Runtime starts four times as fast.
CONFIG = NOT_COMPILED + FIRST_ANALYSIS


class Runner:
    """A stand-in for GitHub's runner: the event, the files and the variables of a job."""

    def __init__(self, directory: Path, node_modules: Path) -> None:
        self.temp, self.node_modules = directory / "temp", node_modules
        self.variables: dict[str, str] = {}
        self.workspace = directory / "workspace"
        self.temp.mkdir()
        self.workspace.mkdir()
        self._git("init", "-q", "-b", "main")
        self.commit({"tunegate.yaml": CONFIG}, "Start")

    def commit(self, files: dict[str, str], message: str) -> str:
        for name, text in files.items():
            (self.workspace / name).write_text(text)
        self._git("add", "--all")
        self._git("commit", "-q", "-m", message)
        return self._git("rev-parse", "HEAD")

    def run(self, payload: dict[str, Any], *, event: str = "push", **inputs: str) -> dict[str, Any]:
        return run_action(
            Event(event, payload),
            inputs,
            workspace=self.workspace,
            temp=self.temp,
            node_modules=self.node_modules,
            variables=self.variables,
        )

    def head(self) -> str:
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
        done = run_program(["git", *identity, *arguments], cwd=self.workspace, check=True)
        return done.stdout.strip()


@pytest.fixture
def runner(tmp_path: Path, node_modules: Path) -> Runner:
    return Runner(tmp_path, node_modules)


def push(before: str, after: str) -> dict[str, Any]:
    return {
        "ref": "refs/heads/main",
        "before": before,
        "after": after,
        "repository": {"default_branch": "main"},
    }


def test_a_new_model_goes_through_every_stage_into_outputs_and_summary(runner: Runner) -> None:
    before = runner.head()
    save(conv_model(), runner.workspace / "models" / "a b é.onnx")
    result = runner.run(push(before, runner.commit({}, "Add a model")))
    assert result["exitCode"] == 0, result["log"]
    outputs = result["outputs"]
    assert outputs["verdict"] == "new"
    assert json.loads(outputs["changed"]) == ["models/a b é.onnx"]
    assert (runner.workspace / outputs["report"]).exists()
    assert "new model" in result["summary"]


def test_a_containers_checkout_in_a_folder_is_read_whoever_it_belongs_to(runner: Runner) -> None:
    """No model changes: it passes without a compiler."""
    save(conv_model(), runner.workspace / "models" / "m.onnx")
    before = runner.commit({}, "Add a model")
    after = runner.commit({"README": "words"}, "Explain")
    outer = runner.workspace.with_name("outer")
    outer.mkdir()
    runner.workspace.rename(outer / "models-repo")
    runner.workspace = outer
    runner.variables = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    result = runner.run(push(before, after), path="models-repo")
    assert (result["exitCode"], result["outputs"]["verdict"]) == (0, "pass"), result["log"]
    assert json.loads(result["outputs"]["changed"]) == []
    assert (outer / ".tunegate" / "verdict.json").exists()


def test_the_plan_stage_gives_a_matrix_for_the_tuning_jobs(runner: Runner) -> None:
    before = runner.commit({"tunegate.yaml": COMPILED}, "Compile")
    save(conv_model(), runner.workspace / "models" / "m.onnx")
    result = runner.run(push(before, runner.commit({}, "Add a model")), stage="plan")
    assert result["exitCode"] == 0, result["log"]
    matrix = json.loads(result["outputs"]["matrix"])
    assert result["outputs"]["any"] == "true"
    assert matrix["include"][0]["runner"] == ["self-hosted"]


def test_an_input_is_never_run_as_shell(runner: Runner) -> None:
    result = runner.run(push("0" * 40, runner.head()), config="$(touch pwned)`touch pwned`")
    assert result["exitCode"] == 2
    assert not (runner.workspace / "pwned").exists()
    assert "not found" in result["log"]


def test_the_action_is_valid_for_the_validator_of_the_marketplace(node_modules: Path) -> None:
    run_program(
        ["node_modules/.bin/action-validator", str(ROOT / "action.yml")], cwd=node_modules, code=0
    )
