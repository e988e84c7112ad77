"""A CI host in a package of its own: installed, found by its variables, held by the contract, and
used by a real command, with no edit outside of that package."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.adversary.action_run import Job
from tests.ci.json_server import Answer, JsonServer, serving
from tests.plugins.plugin_environment import PLUGINS, PluginEnvironment, page_of
from tests.support.programs import run_program

EXAMPLE = PLUGINS / "ci_host_example"
ROOT = PLUGINS.parents[1]
TOKEN = "acme-token-0123456789"
pytestmark = pytest.mark.e2e


class AcmeServer(JsonServer):
    """Keeps one comment for each key."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: dict[str, dict[str, Any]] = {}

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        if token == TOKEN:
            self.comments[f"{asked} {body['key']}"] = body
        return 204, None


def run(
    environment: PluginEnvironment, job: Job, ci: str = "auto", **variables: str
) -> subprocess.CompletedProcess[str]:
    acme = {"ACME": "1", "ACME_KIND": "change", "ACME_CHANGE": "7", "ACME_TARGET": "main"}
    line = ("-m", "tunegate", "run", "--ci", ci, "--comment", "always")
    return run_program(
        [str(environment.python), *line],
        cwd=job.directory / "workspace",
        env={"PATH": os.environ["PATH"], "HOME": str(job.directory), **acme, **variables},
    )


def test_the_example_keeps_every_rule(environment: PluginEnvironment, tmp_path: Path) -> None:
    passed = re.search(r"(\d+) passed", environment.run_tests_of(EXAMPLE, tmp_path))
    assert passed
    assert int(passed[1]) >= 8


def test_a_change_is_judged_told_and_commented_on(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    job = Job(tmp_path)
    job.checkout(job.tip)
    with serving(AcmeServer()) as server:
        known = {"ACME_API": server.url, "ACME_TOKEN": TOKEN, "ACME_JOB_URL": "https://acme/jobs/9"}
        done = run(environment, job, ACME_COMMIT=job.tip, **known)
    assert done.returncode == 0, done.stderr
    (comment,) = server.comments.values()
    assert "[This run](https://acme/jobs/9)" in comment["text"]
    out = tmp_path / "workspace" / ".tunegate"
    found = json.loads((out / "verdict.json").read_text())["revisions"]
    assert (found["base"], found["head"], found["policy"]) == (job.start, job.tip, job.base)
    assert json.loads((out / "ci-acme.json").read_text())["verdict"] == "pass"
    assert TOKEN not in done.stdout + done.stderr


def test_the_page_about_adding_a_host_shows_this_package() -> None:
    page = page_of("A CI host", EXAMPLE, 4)
    for name in ("is_here", "event", "links", "literal_output", "tell", "comment"):
        assert f"`{name}`" in page
