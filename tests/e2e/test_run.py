"""Whole commands on a real model, a real repository, a real store: as a user runs them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.moto_server import BUCKET, CREDENTIALS, moto_server
from tests.support.small_onnx import conv_model, matmul_model, save
from tests.support.workspace import FIRST_ANALYSIS, Workspace

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CONFIG = (
    """\
models:
  - path: models/*.onnx
targets:
  - name: cpu
    usd-per-hour: 3.6
    runtime: tvm
    threads: 1
cache:
  url: {url}
budget:
  minutes: 5
  trials: {trials}
"""
    + FIRST_ANALYSIS
    + "  margin-percent: 30\n"
)


def verdict(workspace: Workspace) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        (workspace.root / ".tunegate" / "verdict.json").read_text()
    )
    return content


def retrain(workspace: Workspace) -> None:
    save(conv_model(channels=16, out=32, size=14, seed=9), workspace.root / "models" / "m.onnx")
    workspace.commit()


def segments(workspace: Workspace) -> list[Path]:
    return sorted((workspace.root / "cache").rglob("*.zst"))


def test_new_weights_need_no_trial_and_a_comment_in_the_configuration_needs_nothing(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=2))
    first = workspace.tunegate("run")
    assert first.returncode == 0, first.stderr
    assert verdict(workspace)["status"] == "new"
    retrain(workspace)
    second = workspace.tunegate("run", "--base", "HEAD~1", "--json")
    assert second.returncode in {0, 3, 4}, (
        second.stderr
    )  # the machine may be too busy to measure on
    found = json.loads(second.stdout)
    assert found == verdict(workspace)
    assert found["tuning"]["trials"] == 0
    assert found["tuning"]["exact"] == found["tuning"]["tasks"] > 0
    workspace.write("tunegate.yaml", "# words\n" + CONFIG.format(url="cache", trials=2))
    workspace.commit()
    third = workspace.tunegate("run", "--base", "HEAD~1")
    assert third.returncode == 0
    assert verdict(workspace)["findings"] == []
    assert "history.html" in workspace.tunegate("history").stdout
    entries = json.loads(workspace.tunegate("history", "--json").stdout)["entries"]
    assert entries[0]["status"] == "new"
    for name in ("report.md", "report.html", "junit.xml", "sarif.json"):
        assert (workspace.root / ".tunegate" / name).stat().st_size > 100


def test_a_base_that_cannot_be_compiled_is_replaced_by_the_version_before(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=2))
    workspace.write("models/m.onnx", "conflict markers")
    workspace.commit()
    retrain(workspace)
    done = workspace.tunegate("plan", "--base", "HEAD~1")
    assert done.returncode == 0, done.stderr
    plan = json.loads((workspace.root / ".tunegate" / "plan.json").read_text())
    (change,) = plan["changes"]["models"]
    assert change["ancestor"]["commits"] == 1
    assert {
        use["side"] for task in plan["resolution"]["tasks"] for use in task["task"]["uses"]
    } == {
        "base",
        "head",
    }


def test_a_lost_shard_costs_its_own_tasks_only(tmp_path: Path) -> None:
    """One of two runners comes back: a clone of the repository, the plan and the cache is all it
    had. Its outcome comes twice, as artifacts of CI may."""
    config = CONFIG.format(url=tmp_path / "shared", trials=4)
    workspace = Workspace(tmp_path / "w", config)
    product = matmul_model(rows=32, inner=64, columns=64)
    save(product, workspace.root / "models" / "n.onnx")
    workspace.git("add", "--all")
    workspace.git("commit", "-q", "--amend", "--no-edit")  # one commit: both models are new
    for stage in (["detect"], ["plan", "--shards", "2"]):
        assert workspace.tunegate(*stage).returncode == 0
    runner = tmp_path / "runner"
    workspace.git("clone", "-q", str(workspace.root), str(runner))
    plan = Path(shutil.copy(workspace.root / ".tunegate" / "plan.json", tmp_path / "plan.json"))
    (runner / ".tunegate").mkdir()
    shutil.copy(plan, runner / ".tunegate")
    done = workspace.tunegate(
        "tune", "--shard", "1", "--repository", str(runner), "--out", str(runner / ".tunegate")
    )
    assert done.returncode == 0, done.stderr
    for name in ("outcome-1.json", "outcome-1-again.json"):
        shutil.copy(runner / ".tunegate" / "outcome-1.json", workspace.root / ".tunegate" / name)
    gate = workspace.tunegate("gate")
    assert gate.returncode == 0, gate.stderr
    assert "shard 0 on cpu left no outcome-0.json: its 1 task was not tuned" in gate.stderr
    found = verdict(workspace)
    assert [each["status"] for each in found["findings"]] == ["new", "new"]
    assert (found["tuning"]["trials"], found["tuning"]["stopped"]) == (2, "lost")


def test_the_same_run_works_against_a_bucket(tmp_path: Path) -> None:
    with moto_server() as url:
        config = CONFIG.format(url=f"s3://{BUCKET}/p\n  endpoint-url: {url}", trials=2)
        workspace = Workspace(tmp_path / "w", config)
        environment = {**CREDENTIALS, "AWS_DEFAULT_REGION": "us-east-1"}
        for stage in ("plan", "tune"):
            first = workspace.tunegate(stage, **environment)
            assert first.returncode == 0, first.stderr
        retrain(workspace)
        second = workspace.tunegate("plan", "--base", "HEAD~1", **environment)
        assert second.returncode == 0, second.stderr
        assert "0 shards to tune" in second.stdout
        shown = workspace.tunegate("cache", "stats", "--json", **environment)
        assert json.loads(shown.stdout)


def test_a_bucket_that_is_not_there_costs_lines_in_the_report_only(tmp_path: Path) -> None:
    config = CONFIG.format(url="s3://b/p\n  endpoint-url: http://127.0.0.1:9", trials=2)
    workspace = Workspace(tmp_path / "w", config)
    done = workspace.tunegate("run", **CREDENTIALS)
    assert done.returncode == 0, done.stderr
    assert "s3://b" in (workspace.root / ".tunegate" / "report.md").read_text()


def test_a_cap_in_dollars_ends_the_tuning_in_time(tmp_path: Path) -> None:
    """A thousandth of a dollar is a second here; the other caps would end it after minutes."""
    config = CONFIG.format(url="cache", trials=100_000)
    workspace = Workspace(tmp_path / "w", config.replace("minutes: 5", "minutes: 5\n  usd: 0.005"))
    assert workspace.tunegate("plan").returncode == 0
    done = workspace.tunegate("tune", "--json")
    outcome = json.loads(done.stdout)
    assert outcome["stopped"] in {"usd", "converged", "finished"}
    assert outcome["spent"]["seconds"] < 60


def test_a_killed_tuning_goes_on_from_its_last_finished_batch(tmp_path: Path) -> None:
    """What it began is no answer to the next plan."""
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=12))
    assert workspace.tunegate("plan").returncode == 0
    listed = segments(workspace)
    with workspace.start("tune") as process:
        wait_for_segments(workspace, process, beside=listed)
        process.kill()
        process.communicate()
    before = segments(workspace)
    assert workspace.tunegate("plan").returncode == 0
    assert "transfer" in answers(workspace).values()
    begun = next(
        workload for workload, answer in answers(workspace).items() if answer == "transfer"
    )
    assert "measured only quickly" in workspace.tunegate("cache", "why-miss", begun).stdout
    done = workspace.tunegate("tune", "--json")
    assert done.returncode == 0, done.stderr
    assert set(before) < set(segments(workspace))
    sources = {task["source"] for task in json.loads(done.stdout)["tasks"]}
    assert sources <= {"transfer", "search", "default"}
    assert workspace.tunegate("plan").returncode == 0
    assert set(answers(workspace).values()) == {"exact"}


def answers(workspace: Workspace) -> dict[str, str]:
    """The answers of the cache to all tasks of the plan, by workload."""
    planned = json.loads((workspace.root / ".tunegate" / "plan.json").read_text())
    return {
        each["task"]["key"]["workload"]: each["lookup"]["type"]
        for each in planned["resolution"]["tasks"]
    }


def test_a_cancelled_tuning_keeps_what_is_done_and_exits_130(tmp_path: Path) -> None:
    """The other signals that cancel are the same to it: system/processes/test_signals.py."""
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=100_000))
    assert workspace.tunegate("plan").returncode == 0
    listed = segments(workspace)
    with workspace.start("tune") as process:
        wait_for_segments(workspace, process, beside=listed)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=100)  # the budget would end it after three times as long
    assert process.returncode == 130
    outcome = json.loads((workspace.root / ".tunegate" / "outcome-0.json").read_text())
    assert outcome["stopped"] == "cancelled"
    assert any(task["records"] for task in outcome["tasks"])


def wait_for_segments(
    workspace: Workspace, process: subprocess.Popen[str], *, beside: Collection[Path] = ()
) -> None:
    """Waits for more than the plan left: it remembers the lists of tasks."""
    deadline, known = time.monotonic() + 100, set(beside)
    while set(segments(workspace)) <= known:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
