"""The Buildkite plugin and the step to copy: by bats, and with the real command."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.house.sources import ROOT
from tests.pipelines.pipeline_job import PipelineJob
from tests.support.programs import require

from ci_hosts_tests.recorded_environment import recorded_environment

pytestmark = pytest.mark.pipelines

FILES = ROOT / "plugin" / "extras" / "ci_hosts" / "pipelines" / "buildkite"
PLUGIN = FILES / "tunegate-buildkite-plugin"
HOOK = str(PLUGIN / "hooks" / "command")
AGENT = 'cat >"$HOME/annotation"; printf "%s\\n" "$@" >"$HOME/arguments"'


@pytest.fixture
def job(tmp_path: Path) -> PipelineJob:
    made = PipelineJob(tmp_path, partial(recorded_environment, "buildkite-pull-request"))
    made.checkout()
    return made


def test_the_hooks_do_what_their_own_tests_say() -> None:
    require("bats")
    done = subprocess.run(
        ["bats", str(PLUGIN / "tests")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("1..6")


def test_the_shell_of_the_plugin_is_sound() -> None:
    require("shellcheck")
    scripts = [*PLUGIN.glob("hooks/*"), *PLUGIN.glob("tests/*.bats")]
    assert len(scripts) == 3
    done = subprocess.run(
        ["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_option_of_the_plugin_is_read_by_a_hook() -> None:
    options = yaml.safe_load((PLUGIN / "plugin.yml").read_text())["configuration"]["properties"]
    hooks = "".join(path.read_text() for path in PLUGIN.glob("hooks/*"))
    page = (PLUGIN / "README.md").read_text()
    for name in options:
        assert f"_{name.upper()}" in hooks
        assert f"`{name}`" in page


def test_a_change_of_words_passes_and_is_annotated(job: PipelineJob) -> None:
    job.program("buildkite-agent", AGENT)
    done = job.run(HOOK, BUILDKITE_PLUGIN_NAME="TUNEGATE", BUILDKITE_BIN_PATH=str(job.programs))
    assert done.returncode == 0, done.stderr
    assert job.verdict()["status"] == "pass"
    home = job.root.parent
    arguments = (home / "arguments").read_text().split()
    assert arguments[0] == "annotate"
    assert arguments[-1] == "success"
    annotation = (home / "annotation").read_text()
    assert "Pass" in annotation
    assert "[Whole report](artifact://.tunegate/report.html)" in annotation


def test_an_agent_that_is_not_there_changes_nothing(job: PipelineJob) -> None:
    done = job.run(HOOK)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("buildkite-agent was not found") == 1


def test_a_configuration_that_cannot_be_read_ends_with_2_and_is_annotated(
    job: PipelineJob,
) -> None:
    job.program("buildkite-agent", AGENT)
    job.checkout_broken()
    done = job.run(HOOK)
    assert done.returncode == 2
    assert "tunegate.yaml" in done.stderr
    assert (job.root.parent / "arguments").read_text().split()[-1] == "error"


def test_the_step_to_copy_passes_too(job: PipelineJob) -> None:
    (step,) = yaml.safe_load((FILES / "pipeline.yml").read_text())["steps"]
    assert "soft_fail" not in step
    done = job.run("/bin/bash", "-e", "-c", step["command"])
    assert done.returncode == 0, done.stderr


def test_a_cancelled_job_reaches_the_command(job: PipelineJob) -> None:
    assert job.cancelled([HOOK]) == (130, True, True)
