"""A checkout that brings its own `.tunegate`: links that lead
elsewhere, results that are not ours."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.adversary.pull_request import PullRequest
from tests.support.programs import run_program
from tunegate.system.output.owned_directory import MARKER, WORK

pytestmark = pytest.mark.e2e
BOOTSTRAP = Path(__file__).resolve().parents[2] / "action" / "bootstrap.py"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A directory outside of the checkout, laid out like one of ours."""
    directory = tmp_path / "precious"
    for name in ("work/thesis.tex", "builds/old.so", "report.md", "verdict.json", "plan.json"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("precious")
    return directory


def content(directory: Path) -> dict[str, str]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_text() for path in files}


def clean_up(pull_request: PullRequest, out: str = ".tunegate") -> subprocess.CompletedProcess[str]:
    """Runs the step that always runs."""
    return run_program(
        [sys.executable, "-I", str(BOOTSTRAP), "clean-up"],
        cwd=pull_request.root,
        env={"PATH": os.environ["PATH"], "TUNEGATE_OUT": out},
    )


COMMANDS = (("run", "--base", "main"), ("gate",), ("compare", "--commands", "echo 1", "echo 1"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_committed_link_leads_nowhere(
    command: tuple[str, ...], pull_request: PullRequest, precious: Path
) -> None:
    pull_request.write(".gitignore", "cache/\n")
    (pull_request.root / ".tunegate").symlink_to(precious)
    pull_request.workspace.commit()
    before = content(precious)
    done = pull_request.workspace.tunegate(*command, code=2)
    assert ".tunegate is a link, and links are not followed" in done.stderr
    assert clean_up(pull_request).returncode == 0
    assert content(precious) == before


@pytest.mark.parametrize("name", ["work", "report.md"])
def test_a_link_inside_leads_nowhere(name: str, pull_request: PullRequest, precious: Path) -> None:
    pull_request.write(".gitignore", "cache/\n")
    (pull_request.root / ".tunegate").mkdir()
    (pull_request.root / ".tunegate" / name).symlink_to(precious / name)
    before = content(precious)
    assert f"git tracks .tunegate/{name}" in pull_request.judge(code=2).err
    assert clean_up(pull_request).returncode == 0
    assert content(precious) == before


def test_a_linked_parent_leads_nowhere(
    pull_request: PullRequest, tmp_path: Path, precious: Path
) -> None:
    (pull_request.root / "results").symlink_to(tmp_path)
    before = content(precious)
    assert "results is a link" in pull_request.judge("--out", "results/precious", code=2).err
    done = clean_up(pull_request, "results/precious")
    assert (done.returncode, "::warning" in done.stdout) == (0, True)
    assert content(precious) == before


def test_committed_results_are_not_ours(pull_request: PullRequest) -> None:
    pull_request.write(".gitignore", "cache/\n")
    forged = {MARKER: {"tunegate": 1}, "plan.json": {"schema": 1}, "outcome-0.json": {"schema": 1}}
    for name, body in forged.items():
        pull_request.write(f".tunegate/{name}", json.dumps(body))
    pull_request.write(f".tunegate/{WORK}/kept.bin", "kept")
    pull_request.make_twice_as_slow()
    pull_request.workspace.commit()
    assert "git tracks .tunegate/" in pull_request.workspace.tunegate("gate", code=2).stderr
    assert clean_up(pull_request).returncode == 0
    assert (pull_request.root / ".tunegate" / "work" / "kept.bin").exists()


def test_a_committed_report_is_not_told_to_github(
    pull_request: PullRequest, tmp_path: Path, precious: Path
) -> None:
    pull_request.write(".gitignore", "cache/\n")
    (pull_request.root / ".tunegate").mkdir()
    (pull_request.root / ".tunegate" / "report.md").symlink_to(precious / "report.md")
    pull_request.write(".tunegate/verdict.json", '{"schema": 1, "status": "pass"}')
    pull_request.workspace.commit()
    summary, output = tmp_path / "summary.md", tmp_path / "output.txt"
    run_program(
        [sys.executable, "-P", "-m", "tunegate_action"],
        cwd=pull_request.root,
        env={
            **os.environ,
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "TUNEGATE_BASE": "main",
            "TUNEGATE_HEAD": "HEAD",
        },
        code=2,
    )
    assert "precious" not in (summary.read_text() if summary.exists() else "")
    assert "error\n" in output.read_text()
    assert "pass\n" not in output.read_text()


def test_two_runs_never_share_a_directory(pull_request: PullRequest) -> None:
    waiting = ("compare", "--commands", "sleep 600", "sleep 600")
    with pull_request.workspace.start(*waiting) as first:
        lock = pull_request.root / ".tunegate" / ".lock"
        while first.poll() is None and not (lock.exists() and lock.read_text()):
            time.sleep(0.05)
        judged = pull_request.judge()
        first.kill()
    assert judged.exit_code == 4, judged.err
    assert f"process {first.pid} (tunegate compare, since" in judged.err
    pull_request.workspace.tunegate("detect", "--base", "main", code=0)
