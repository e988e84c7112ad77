"""The step and the pipe of Bitbucket: their scripts, with the real command."""

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

FILES = ROOT / "plugin" / "extras" / "ci_hosts" / "pipelines" / "bitbucket"
PIPE = str(FILES / "pipe" / "pipe.sh")
PIPELINE = yaml.safe_load((FILES / "bitbucket-pipelines.yml").read_text())
SCRIPT = "\n".join(PIPELINE["definitions"]["steps"][0]["step"]["script"])
OUT = "test-results/tunegate"


@pytest.fixture
def job(tmp_path: Path) -> PipelineJob:
    made = PipelineJob(tmp_path, partial(recorded_environment, "bitbucket-pull-request"))
    made.checkout()
    return made


@pytest.mark.parametrize("line", [("bash", "-e", "-c", SCRIPT), (PIPE,)], ids=["step", "pipe"])
def test_a_change_of_words_passes(job: PipelineJob, line: tuple[str, ...]) -> None:
    done = job.run(*line)
    assert done.returncode == 0, done.stderr
    assert job.verdict(OUT)["status"] == "pass"


def test_what_bitbucket_has_merged_into_the_checkout_is_the_base(job: PipelineJob) -> None:
    """The clone is then whole, as Bitbucket's is."""
    job.job.origin.git("switch", "-q", "-c", "as-bitbucket", job.job.tip)
    merged = job.job.origin.merge("main")
    job.checkout(job.job.tip, merged)
    done = job.run(PIPE)
    assert done.returncode == 0, done.stderr
    revisions = job.verdict(OUT)["revisions"]
    assert isinstance(revisions, dict)
    assert (revisions["base"], revisions["head"]) == (job.job.base, merged)


def test_a_configuration_that_cannot_be_read_ends_with_2(job: PipelineJob) -> None:
    job.checkout_broken()
    done = job.run(PIPE)
    assert done.returncode == 2
    assert "tunegate.yaml" in done.stderr


@pytest.mark.parametrize(
    ("inconclusive", "code", "ended"), [("fail", 3, 3), ("pass", 3, 0), ("pass", 1, 1)]
)
def test_inconclusive_passes_only_where_somebody_says_so(
    job: PipelineJob, inconclusive: str, code: int, ended: int
) -> None:
    job.program("tunegate", f"exit {code}")
    assert job.run(PIPE, INCONCLUSIVE=inconclusive).returncode == ended


def test_every_variable_of_the_pipe_is_read_and_quoted(job: PipelineJob) -> None:
    script = Path(PIPE).read_text()
    pipe = yaml.safe_load((FILES / "pipe" / "pipe.yml").read_text())
    for each in pipe["variables"]:
        assert f"${{{each['name']}:-{each['default']}}}" in script
    job.program("tunegate", 'printf "<%s>" "$@"')
    assert "<--config><a b; $(x)>" in job.run(PIPE, CONFIG="a b; $(x)").stdout


@pytest.mark.parametrize("inconclusive", ["fail", "pass"])
def test_a_stopped_pipeline_reaches_the_command(job: PipelineJob, inconclusive: str) -> None:
    code, is_told, is_process = job.cancelled([PIPE], INCONCLUSIVE=inconclusive)
    assert (code, is_told, is_process) == (130, True, inconclusive == "fail")


def test_the_shell_of_the_pipe_is_sound() -> None:
    require("shellcheck")
    done = subprocess.run(["shellcheck", PIPE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
