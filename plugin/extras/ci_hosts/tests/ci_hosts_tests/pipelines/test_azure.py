"""The template of Azure Pipelines: its script, with the real command."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.ci.json_server import serving
from tests.house.sources import ROOT
from tests.pipelines.pipeline_job import PipelineJob, parameters_filled
from tests.support.programs import require

from ci_hosts_tests.azure.azure_server import TOKEN, AzureServer
from ci_hosts_tests.recorded_environment import recorded_environment

pytestmark = pytest.mark.pipelines

TEMPLATE: dict[str, Any] = yaml.safe_load(
    (ROOT / "plugin" / "extras" / "ci_hosts" / "pipelines" / "azure" / "tunegate.yml").read_text()
)
STEP = TEMPLATE["steps"][0]
DEFAULTS = {each["name"]: each["default"] for each in TEMPLATE["parameters"]}


@pytest.fixture
def job(tmp_path: Path) -> PipelineJob:
    made = PipelineJob(tmp_path, partial(recorded_environment, "azure-pull-request"))
    made.checkout(made.job.tip, made.job.merge)
    return made


def environment(**parameters: str) -> dict[str, str]:
    """The variables of the step, with its parameters filled in."""
    values = {**DEFAULTS, **parameters}
    return {
        name: parameters_filled(text, "${{", "}}", values)
        for name, text in STEP["env"].items()
        if isinstance(text, str)
    }


def test_a_change_of_words_passes_and_is_told_by_commands(job: PipelineJob) -> None:
    done = job.run("bash", "--noprofile", "--norc", "-c", STEP["bash"], **environment())
    assert done.returncode == 0, done.stderr
    assert job.verdict()["status"] == "pass"
    assert "##vso[task.setvariable variable=TUNEGATE_VERDICT;isOutput=true;]pass" in done.stdout
    assert f"##vso[task.uploadsummary]{job.root}/.tunegate/ci-summary.md" in done.stdout


def test_a_configuration_that_cannot_be_read_is_an_issue_of_the_run(job: PipelineJob) -> None:
    job.job.origin.git("switch", "-q", "-c", "broken", "merged")
    merged = job.job.origin.commit({"tunegate.yaml": b"models: 5\n"})
    job.checkout(job.job.tip, merged)
    done = job.run("bash", "-c", STEP["bash"], BUILD_SOURCEVERSION=merged, **environment())
    assert done.returncode == 2
    assert "##vso[task.logissue type=error;" in done.stdout


def test_a_models_name_is_no_command_of_the_run(job: PipelineJob) -> None:
    at = job.job
    at.origin.git("switch", "-q", "-c", "odd", "merged")
    name = "models/##vso[task.setvariable variable=PLANTED]x.onnx"
    merged = at.origin.commit({name: b"no model", "models/n.onnx": b"nor this"})
    job.checkout(at.tip, merged)
    done = job.run("bash", "-c", STEP["bash"], BUILD_SOURCEVERSION=merged, **environment())
    said = done.stdout + done.stderr
    assert "PLANTED" in said
    begun = [line for line in said.splitlines() if "##" in line]
    assert all(
        re.match(r"##vso\[task\.(logissue|setvariable|uploadsummary)[ \]]", x) for x in begun
    )
    assert not [
        line for line in begun if line.count("##vso[") > 1 or "variable=PLANTED" in line[:40]
    ]


def test_a_thread_of_the_pull_request_has_the_report_of_the_last_run(job: PipelineJob) -> None:
    with serving(AzureServer()) as server:
        collection = {"SYSTEM_COLLECTIONURI": server.url, "SYSTEM_ACCESSTOKEN": TOKEN}
        variables = {**environment(comment="always"), **collection}
        runs = [job.run("bash", "-c", STEP["bash"], **variables) for _ in range(2)]
        (text,) = server.texts
    assert [done.returncode for done in runs] == [0, 0]
    assert "Pass" in text
    assert "buildId=4711" in text
    assert not [done for done in runs if TOKEN in done.stdout + done.stderr]


def test_the_token_of_the_job_is_handed_on_only_for_a_comment() -> None:
    (condition,) = (name for name in STEP["env"] if name.startswith("${{"))
    assert condition == "${{ if ne(parameters.comment, 'never') }}"
    assert STEP["env"][condition] == {"SYSTEM_ACCESSTOKEN": "$(System.AccessToken)"}
    assert "SYSTEM_ACCESSTOKEN" not in environment()


@pytest.mark.parametrize(
    ("inconclusive", "code", "ended"), [("fail", 3, 3), ("warn", 3, 0), ("warn", 1, 1)]
)
def test_inconclusive_warns_only_where_somebody_says_so(
    job: PipelineJob, inconclusive: str, code: int, ended: int
) -> None:
    job.program("tunegate", f"exit {code}")
    done = job.run("bash", "-c", STEP["bash"], **environment(inconclusive=inconclusive))
    assert done.returncode == ended
    assert ("##vso[task.complete result=SucceededWithIssues;]" in done.stdout) == (
        (code, ended) == (3, 0)
    )


def test_no_parameter_is_code_of_the_script(job: PipelineJob) -> None:
    assert "${{" not in STEP["bash"]
    job.program("tunegate", 'printf "<%s>" "$@"')
    done = job.run("bash", "-c", STEP["bash"], **environment(config="a b; $(touch planted)"))
    assert "<--config><a b; $(touch planted)>" in done.stdout
    assert not (job.root / "planted").exists()


@pytest.mark.parametrize("inconclusive", ["fail", "warn"])
def test_a_cancelled_run_reaches_the_command(job: PipelineJob, inconclusive: str) -> None:
    line = ["bash", "-c", STEP["bash"]]
    code, is_told, is_process = job.cancelled(line, **environment(inconclusive=inconclusive))
    assert (code, is_told, is_process) == (130, True, inconclusive == "fail")


def test_the_shell_of_the_template_is_sound() -> None:
    require("shellcheck")
    done = subprocess.run(
        ["shellcheck", "-s", "bash", "-"],
        input=STEP["bash"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
