"""The examples for GitHub Enterprise Server, which takes no artifacts of version 4 and later."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.json_server import QuietHandler, serving
from tests.e2e.action_runner import ROOT

pytestmark = pytest.mark.e2e
FOLDER = ROOT / "examples" / "enterprise-server"
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))


def parsed(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def without_artifacts(workflow: dict[str, Any]) -> dict[str, Any]:
    for job in workflow["jobs"].values():
        job["steps"] = [each for each in job["steps"] if not is_of_artifacts(each)]
    return workflow


def is_of_artifacts(step: dict[str, Any]) -> bool:
    return (
        "-artifact@" in step.get("uses", "") or step.get("name") == "The verdict of the other run"
    )


@pytest.mark.parametrize("name", NAMES)
def test_only_the_artifacts_differ(name: str) -> None:
    usual = parsed(ROOT / "examples" / name)
    assert without_artifacts(parsed(FOLDER / name)) == without_artifacts(usual)


@pytest.mark.parametrize("name", NAMES)
def test_only_version_3_is_used_and_what_a_job_reads_another_has_written(name: str) -> None:
    steps = [step for job in parsed(FOLDER / name)["jobs"].values() for step in job["steps"]]
    artifacts = [step for step in steps if "-artifact@" in step.get("uses", "")]
    lines = (FOLDER / name).read_text().splitlines()
    assert all(" # v3." in line for line in lines if "-artifact@" in line)
    known = {"name", "path", "include-hidden-files", "if-no-files-found"}
    assert all(set(step["with"]) <= known for step in artifacts)
    read, written = (
        {step["with"]["name"] for step in artifacts if f"/{kind}-artifact@" in step["uses"]}
        for kind in ("download", "upload")
    )
    assert read <= written


class _Handler(QuietHandler):
    """Lists an artifact, and redirects to where it lies."""

    server: _Server

    def do_GET(self) -> None:
        path, *_ = self.path.partition("?")
        self.server.asked[path] = str(self.headers["Authorization"])
        address = f"http://127.0.0.1:{self.server.server_port}"
        if path == "/repos/acme/models/actions/runs/9/artifacts":
            kept = [{"name": "tunegate-fork", "archive_download_url": f"{address}/zip"}]
            self._answer(json.dumps({"artifacts": kept}).encode())
        elif path == "/zip":
            self.send_response(302)
            self.send_header("Location", f"{address}/blob")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._answer(self.server.archive)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: dict[str, str] = {}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("verdict.json", "{}")
            archive.writestr("../outside", "of the fork")
        self.archive = packed.getvalue()


@pytest.fixture
def server() -> Iterator[_Server]:
    with serving(_Server()) as made:
        yield made


def test_the_verdict_of_a_forks_run_is_fetched_and_nothing_else(
    server: _Server, tmp_path: Path
) -> None:
    (job,) = parsed(FOLDER / "forks-comment.yml")["jobs"].values()
    script = job["steps"][0]["run"]
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_REPOSITORY": "acme/models",
        "TOKEN": "ghs_secret",
        "RUN": "9",
    }
    (tmp_path / "job").mkdir()
    subprocess.run(
        ["bash", "-e"], input=script, text=True, cwd=tmp_path / "job", env=environment, check=True
    )
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [Path("job/fork-run/verdict.json")]
    assert server.asked["/zip"] == "Bearer ghs_secret"
    assert server.asked["/blob"] == "None"
