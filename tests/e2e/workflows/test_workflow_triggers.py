"""The events and the concurrency of the workflows that users copy."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

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
        github = {"event_name": event, "ref": ref, "run_id": run}
        return expanded(texts, github, node_modules)

    pulls = [of("pull_request", "refs/pull/1/merge", run) for run in ("8", "9")]
    assert pulls[0] == pulls[1]
    assert pulls[0][1] == "true"
    first, second = (of("push", "refs/heads/main", run) for run in ("8", "9"))
    assert first[0] != second[0], "GitHub cancels what waits in the same group"
    assert first[1] == second[1] == "false"


def test_a_push_is_gated_after_it_has_taken_over_what_its_pull_request_tuned(
    node_modules: Path,
) -> None:
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
        assert found == [
            str(event in {"push", "schedule"}).lower(),
            str(event != "schedule").lower(),
        ]
    with_role = yaml.safe_load((ROOT / "examples" / "oidc.yml").read_text())
    assert "push" not in with_role[True]
