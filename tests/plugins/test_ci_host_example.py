"""A CI host in a package of its own: installed, found by its variables, held by the contract, and
used by a real command, with no edit outside of that package."""

import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.adversary.action_run import Job
from tests.plugins.plugin_environment import PLUGINS, PluginEnvironment, page_of
from tests.support.programs import run_program

EXAMPLE = PLUGINS / "ci_host_example"
ROOT = PLUGINS.parents[1]
TOKEN = "acme-token-0123456789"
pytestmark = pytest.mark.e2e


class AcmeServer(ThreadingHTTPServer):
    """Keeps one comment for each key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: dict[str, dict[str, Any]] = {}


class _Handler(BaseHTTPRequestHandler):
    server: AcmeServer

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] == f"Bearer {TOKEN}":
            self.server.comments[f"{self.path} {body['key']}"] = body
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


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
    with AcmeServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        api = f"http://127.0.0.1:{server.server_port}"
        known = {"ACME_API": api, "ACME_TOKEN": TOKEN, "ACME_JOB_URL": "https://acme/jobs/9"}
        done = run(environment, job, ACME_COMMIT=job.tip, **known)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    (comment,) = server.comments.values()
    assert "[This run](https://acme/jobs/9)" in comment["text"]
    out = tmp_path / "workspace" / ".tunegate"
    found = json.loads((out / "verdict.json").read_text())["revisions"]
    assert (found["base"], found["head"], found["policy"]) == (job.start, job.tip, job.base)
    assert json.loads((out / "ci-acme.json").read_text())["verdict"] == "pass"
    assert TOKEN not in done.stdout + done.stderr


def test_an_event_that_the_example_refuses_is_refused(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    job = Job(tmp_path)
    job.checkout(job.tip)
    done = run(environment, job, ACME_KIND="party")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'error: ACME_KIND: "party" says no two commits' in done.stderr


def test_an_environment_without_the_package_says_what_is_known(tmp_path: Path) -> None:
    job = Job(tmp_path)
    job.checkout(job.tip)
    done = run(PluginEnvironment(tmp_path / "e"), job, "acme")
    assert done.returncode == 2
    assert '"acme" is no CI that is known. Known are ' in done.stderr


def test_the_page_about_adding_a_host_shows_this_package() -> None:
    page = page_of("A CI host", EXAMPLE, 4)
    for name in ("is_here", "event", "links", "literal_output", "tell", "comment"):
        assert f"`{name}`" in page
