"""The orb of CircleCI, and the configuration without it: their scripts, with the real command."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.house.sources import ROOT
from tests.pipelines.pipeline_job import PipelineJob, parameters_filled
from tests.support.programs import require

from ci_hosts_tests.recorded_environment import recorded_environment

pytestmark = pytest.mark.pipelines

FILES = ROOT / "plugin" / "extras" / "ci_hosts" / "pipelines" / "circleci"
ORB: dict[str, Any] = yaml.safe_load((FILES / "orb.yml").read_text())
GATE = ORB["commands"]["gate"]
STEP = GATE["steps"][0]["run"]
SHELL = ("/bin/bash", "-eo", "pipefail", "-c")


@pytest.fixture
def job(tmp_path: Path) -> PipelineJob:
    made = PipelineJob(tmp_path, partial(recorded_environment, "circleci-pull-request"))
    made.checkout()
    return made


def environment(**parameters: str) -> dict[str, str]:
    values = {name: each["default"] for name, each in GATE["parameters"].items()} | parameters
    return {
        name: parameters_filled(text, "<<", ">>", values)
        for name, text in STEP["environment"].items()
    }


def test_a_change_of_words_passes(job: PipelineJob) -> None:
    done = job.run(*SHELL, STEP["command"], **environment())
    assert done.returncode == 0, done.stderr
    assert job.verdict()["status"] == "pass"
    assert (job.root / ".tunegate" / "ci-outputs.env").read_text().startswith("TUNEGATE_VERDICT=")


def test_the_job_to_copy_passes_too(job: PipelineJob) -> None:
    config = yaml.safe_load((FILES / "config.yml").read_text())
    step = config["jobs"]["gate"]["steps"][1]["run"]
    done = job.run(*SHELL, step["command"], TUNEGATE_DEFAULT_BRANCH="main")
    assert done.returncode == 0, done.stderr


def test_a_configuration_that_cannot_be_read_ends_with_2(job: PipelineJob) -> None:
    job.checkout_broken()
    done = job.run(*SHELL, STEP["command"], **environment())
    assert done.returncode == 2
    assert "tunegate.yaml" in done.stderr


@pytest.mark.parametrize(
    ("inconclusive", "code", "ended"), [("fail", 3, 3), ("pass", 3, 0), ("pass", 1, 1)]
)
def test_inconclusive_passes_only_where_somebody_says_so(
    job: PipelineJob, inconclusive: str, code: int, ended: int
) -> None:
    job.program("tunegate", f"exit {code}")
    done = job.run(*SHELL, STEP["command"], **environment(inconclusive=inconclusive))
    assert done.returncode == ended


def test_no_parameter_is_code_of_the_script() -> None:
    assert "<<" not in STEP["command"]
    handed_on = ORB["jobs"]["gate"]["steps"][1]["gate"]
    assert set(handed_on) == set(GATE["parameters"])


@pytest.mark.parametrize("inconclusive", ["fail", "pass"])
def test_a_cancelled_job_reaches_the_command(job: PipelineJob, inconclusive: str) -> None:
    line = [*SHELL, STEP["command"]]
    code, is_told, is_process = job.cancelled(line, **environment(inconclusive=inconclusive))
    assert (code, is_told, is_process) == (130, True, inconclusive == "fail")


def test_the_shell_of_the_orb_is_sound() -> None:
    require("shellcheck")
    done = subprocess.run(
        ["shellcheck", "-s", "bash", "-"],
        input=STEP["command"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
