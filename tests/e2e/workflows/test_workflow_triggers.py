"""The events and the concurrency of the workflows that users copy."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.json_server import LoopbackServer, QuietHandler, serving
from tests.e2e.action_runner import ROOT

pytestmark = pytest.mark.e2e
STARTER = ROOT / "plugin" / "tunegate" / "cli" / "handlers" / "workflow.yml"


def workflows() -> list[Path]:
    """Those that judge pull requests and what is merged. One for forks alone judges nothing."""
    every = [*sorted((ROOT / "examples").rglob("*.yml")), STARTER]
    return [path for path in every if "pull_request" in triggers(path) and "forks" not in path.name]


def triggers(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())[True]
    return found


def expanded(texts: list[str], github: dict[str, str], node_modules: Path) -> list[str]:
    done = subprocess.run(
        ["node", "evaluate.mjs"],
        input=json.dumps({"texts": texts, "context": {"github": github}, "status": "success"}),
        cwd=node_modules,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("path", workflows(), ids=lambda path: str(path.name))
def test_a_merge_queue_is_gated_too(path: Path) -> None:
    assert "merge_group" in triggers(path)


@pytest.mark.parametrize("path", workflows(), ids=lambda path: str(path.name))
def test_a_pull_request_that_gets_another_target_is_gated_again(path: Path) -> None:
    """A job that left out other edits would be skipped, which counts as a success."""
    usual = {"opened", "synchronize", "reopened"}
    assert set(triggers(path)["pull_request"]["types"]) == {*usual, "edited"}
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    assert not [job for job in jobs if "github.event.action" in str(job.get("if"))]


@pytest.mark.parametrize("path", workflows(), ids=lambda path: str(path.name))
def test_the_report_that_the_comment_links_to_is_kept(path: Path) -> None:
    """It is in the artifacts of the run."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    writing = [job for job in jobs.values() if job["permissions"].get("pull-requests") == "write"]
    assert writing
    for job in writing:
        last = job["steps"][-1]
        assert last["uses"].startswith("actions/upload-artifact@")
        assert last["with"]["path"] == ".tunegate/"
        assert (last["if"], last["continue-on-error"]) == ("${{ !cancelled() }}", True)


@pytest.mark.parametrize("path", workflows(), ids=lambda path: str(path.name))
def test_only_a_pull_request_cancels_its_run_before(path: Path, node_modules: Path) -> None:
    concurrency = yaml.safe_load(path.read_text())["concurrency"]
    texts = [concurrency["group"], str(concurrency["cancel-in-progress"])]

    def of(event: str, ref: str, run: str) -> list[str]:
        return expanded(texts, {"event_name": event, "ref": ref, "run_id": run}, node_modules)

    pulls = [of("pull_request", "refs/pull/1/merge", run) for run in ("8", "9")]
    assert pulls[0] == pulls[1]
    assert pulls[0][1] == "true"
    first, second = (of("push", "refs/heads/main", run) for run in ("8", "9"))
    assert first[0] != second[0], "GitHub cancels what waits in the same group"
    assert first[1] == second[1] == "false"


def test_a_push_is_gated_with_what_its_pull_request_tuned(node_modules: Path) -> None:
    """Otherwise the push of a merge pays for the same trials again."""
    jobs = yaml.safe_load(STARTER.read_text())["jobs"]
    assert jobs["gate"]["needs"] == "warm"
    *_, finding, promoting, warming = jobs["warm"]["steps"]
    names = [each["name"] for each in (finding, promoting, warming)]
    assert names == ["find the merged pull request", "promote what it tuned", "tunegate warm"]
    assert "env" not in promoting, "a token beside models"
    events = ("pull_request", "merge_group", "push", "schedule")
    for event in events:
        texts = [f"${{{{ {jobs['warm']['if']} }}}}", jobs["gate"]["if"]]
        found = expanded(texts, {"event_name": event, "ref": "refs/heads/main"}, node_modules)
        expected = [str(event in {"push", "schedule"}).lower(), str(event != "schedule").lower()]
        assert found == expected
    assert "push" not in yaml.safe_load((ROOT / "examples" / "oidc.yml").read_text())[True]


# The examples for an Enterprise server.


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
        if path == "/repos/acme/models/actions/runs/9/artifacts":
            kept = [{"name": "tunegate-fork", "archive_download_url": f"{self.server.url}/zip"}]
            self.answer(200, json.dumps({"artifacts": kept}).encode(), {})
        elif path == "/zip":
            self.answer(302, b"", {"Location": f"{self.server.url}/blob"})
        else:
            self.answer(200, self.server.archive, {})


class _Server(LoopbackServer):
    def __init__(self) -> None:
        super().__init__(_Handler)
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


def test_only_the_verdict_of_a_forks_run_is_fetched(server: _Server, tmp_path: Path) -> None:
    (job,) = parsed(FOLDER / "forks-comment.yml")["jobs"].values()
    script = job["steps"][0]["run"]
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": server.url,
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
