"""The Task of Tekton: its structure, and its script with the real command."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.pipelines.pipeline_job import PipelineJob
from tests.support.programs import require

pytestmark = pytest.mark.pipelines

EXTRA = Path(__file__).parents[3]
TASK: dict[str, Any] = yaml.safe_load(
    (EXTRA / "pipelines" / "tekton" / "tunegate.yaml").read_text()
)
SPEC = TASK["spec"]
(STEP,) = SPEC["steps"]


@pytest.fixture
def job(tmp_path: Path) -> PipelineJob:
    made = PipelineJob(tmp_path)
    made.checkout()
    return made


def variables(job: PipelineJob, **parameters: str) -> dict[str, str]:
    """The variables of the step, as Tekton fills them in."""
    places = {
        "workspaces.source.path": str(job.root),
        "workspaces.output.path": str(job.root.parent / "kept"),
        "results.verdict.path": str(job.root.parent / "verdict"),
    }
    defaults = {each["name"]: each.get("default", "") for each in SPEC["params"]}
    values = {f"params.{name}": value for name, value in {**defaults, **parameters}.items()}
    return {
        each["name"]: re.sub(
            r"\$\(([^)]*)\)", lambda at: {**places, **values}[at[1]], each["value"]
        )
        for each in STEP["env"]
        if each["name"] != "HOME"
    }


def ended(job: PipelineJob, **parameters: str) -> tuple[int, str]:
    """The exit code and the result."""
    (job.root.parent / "kept").mkdir(exist_ok=True)
    done = job.run("bash", "-c", STEP["script"], **variables(job, **parameters))
    return done.returncode, (job.root.parent / "verdict").read_text()


def test_a_change_of_words_passes_and_its_verdict_is_the_result(job: PipelineJob) -> None:
    assert ended(job) == (0, "pass")
    assert (job.root.parent / "kept" / "tunegate" / "report.html").exists()


def test_a_configuration_that_cannot_be_read_is_an_error(job: PipelineJob) -> None:
    job.checkout_broken()
    assert ended(job) == (2, "error")


@pytest.mark.parametrize(
    ("inconclusive", "code", "expected"),
    [
        ("fail", 3, (3, "inconclusive")),
        ("pass", 3, (0, "inconclusive")),
        ("pass", 1, (1, "fail")),
        ("fail", 5, (5, "no-baseline")),
    ],
)
def test_inconclusive_passes_only_where_somebody_says_so(
    job: PipelineJob, inconclusive: str, code: int, expected: tuple[int, str]
) -> None:
    job.program("tunegate", f"exit {code}")
    assert ended(job, inconclusive=inconclusive) == expected


def test_a_pod_that_is_stopped_reaches_the_command(job: PipelineJob) -> None:
    code, is_told, _ = job.cancelled(["bash", "-c", STEP["script"]], **variables(job))
    assert (code, is_told) == (130, True)
    assert (job.root.parent / "verdict").read_text() == "error"


def test_every_parameter_reaches_the_script_as_a_variable_and_not_as_code(
    job: PipelineJob,
) -> None:
    assert (TASK["apiVersion"], TASK["kind"]) == ("tekton.dev/v1", "Task")
    assert "$(" not in STEP["script"]
    used = re.findall(r"\$\(params\.([\w-]+)\)", yaml.safe_dump(STEP))
    assert set(used) == {each["name"] for each in SPEC["params"]}
    job.program("tunegate", 'printf "<%s>" "$@"')
    done = job.run("bash", "-c", STEP["script"], **variables(job, base="a b; $HOME"))
    assert done.stdout.endswith("<--base><a b; $HOME>")


def test_the_shell_of_the_task_is_sound() -> None:
    require("shellcheck")
    done = subprocess.run(
        ["shellcheck", "-"], input=STEP["script"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
