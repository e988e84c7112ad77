"""Whole commands on a real model, a real repository, a real store: as a user runs them."""

import datetime
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from msgspec.structs import replace

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.servers.moto_server import CREDENTIALS
from tests.support.small_onnx import conv_model, matmul_model, save
from tests.support.workspace import (
    COMPILED,
    FIRST_ANALYSIS,
    NOT_COMPILED,
    UNDECIDED_GATE,
    Workspace,
)
from tests.support.workspace import CONFIG as WORKSPACE_CONFIG
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache
from tunegate_cache.format.records import ExactHit, WorkloadKey, WorkloadShape

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


@pytest.mark.e2e
def test_new_weights_need_no_trial_and_a_configurations_comment_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=2))
    workspace.tunegate("run", code=0)
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
    workspace.tunegate("run", "--base", "HEAD~1", code=0)
    assert verdict(workspace)["findings"] == []
    used = json.loads(workspace.tunegate("cache", "stats", "--json").stdout)["used"]
    assert (used["runs"], used["cost"]["hits"]) == (2, found["tuning"]["exact"])
    for name in ("report.md", "report.html", "junit.xml", "sarif.json"):
        assert (workspace.root / ".tunegate" / name).stat().st_size > 100


@pytest.mark.e2e
def test_a_base_that_cannot_be_compiled_is_replaced_by_the_version_before(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", CONFIG.format(url="cache", trials=2))
    workspace.write("models/m.onnx", "conflict markers")
    workspace.commit()
    retrain(workspace)
    workspace.tunegate("plan", "--base", "HEAD~1", code=0)
    plan = json.loads((workspace.root / ".tunegate" / "plan.json").read_text())
    (change,) = plan["changes"]["models"]
    assert change["ancestor"]["commits"] == 1
    assert {
        use["side"] for task in plan["resolution"]["tasks"] for use in task["task"]["uses"]
    } == {"base", "head"}


@pytest.mark.e2e
@pytest.mark.proof
def test_a_bucket_that_is_not_there_costs_lines_in_the_report_only(tmp_path: Path) -> None:
    config = CONFIG.format(url="s3://b/p\n  endpoint-url: http://127.0.0.1:9", trials=2)
    workspace = Workspace(tmp_path / "w", config)
    workspace.tunegate("run", **CREDENTIALS, code=0)
    assert "s3://b" in (workspace.root / ".tunegate" / "report.md").read_text()


@pytest.mark.e2e
def test_a_cap_in_dollars_ends_the_tuning_in_time(tmp_path: Path) -> None:
    """A thousandth of a dollar is a second here; the other caps would end it after minutes."""
    config = CONFIG.format(url="cache", trials=100_000)
    workspace = Workspace(tmp_path / "w", config.replace("minutes: 5", "minutes: 5\n  usd: 0.005"))
    assert workspace.tunegate("plan").returncode == 0
    outcome = json.loads(workspace.tunegate("tune", "--json").stdout)
    assert outcome["stopped"] in {"usd", "converged", "finished"}
    assert outcome["spent"]["seconds"] < 200


@pytest.mark.e2e
@pytest.mark.proof
def test_a_killed_tuning_goes_on_from_its_last_finished_batch(tmp_path: Path) -> None:
    """The next plan takes no unfinished batch for an answer."""
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
    begun = next(key for key, answer in answers(workspace).items() if answer == "transfer")
    assert "measured only quickly" in workspace.tunegate("cache", "why-miss", begun).stdout
    done = workspace.tunegate("tune", "--json", code=0)
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


@pytest.mark.e2e
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


# `tunegate warm` in a real repository, and what the runs after it pay.

TWO_RUNTIMES = (
    WORKSPACE_CONFIG.replace("trials: 2", "trials: 0") + UNDECIDED_GATE + "  inconclusive: warn\n"
)


@pytest.mark.e2e
def test_warm_tunes_what_is_configured_once_and_new_weights_never(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED)
    save(conv_model(channels=16, out=32, size=14, seed=5), workspace.root / "models" / "m.onnx")
    workspace.commit()
    cold = json.loads(workspace.tunegate("plan", "--base", "HEAD~1", "--json").stdout)
    assert not any(task["trials"] for shard in cold["shards"] for task in shard["tasks"])
    assert "for tunegate warm" in cold["notes"][0]
    first = json.loads(workspace.tunegate("warm", "--trials", "12", "--json").stdout)
    assert 0 < first["tuning"]["trials"] <= 12
    assert (first["left"], first["is_published"]) == (0, True)
    second = json.loads(workspace.tunegate("warm", "--json").stdout)
    assert all(each["known_before"] == each["tasks"] for each in second["models"]), second
    assert second["tuning"]["trials"] == 0
    opened = workspace.root / ".tunegate" / "work" / "compile" / "tvm" / "compiler.log"
    assert opened.exists()
    planned = json.loads(workspace.tunegate("plan", "--base", "HEAD~1", "--json").stdout)
    assert planned["notes"] == []
    assert not opened.exists()
    assert tasks_of(planned) == tasks_of(cold)
    age_cache(workspace.root, tasks_of(cold))
    upgraded = json.loads(workspace.tunegate("warm", "--json").stdout)["tuning"]
    asked = upgraded["kept"] + upgraded["lost"] + upgraded["still_lost"]
    assert asked == upgraded["trials"] > 0
    assert upgraded["not_asked"] == 0


def age_cache(root: Path, tasks: list[Any]) -> None:
    """Replaces the workspace's cache by what an older toolchain would have left."""
    wanted = [
        (msgspec.convert(each["key"], WorkloadKey), msgspec.convert(each["shape"], WorkloadShape))
        for each in tasks
    ]
    config = CacheConfig(url=str(root / "cache"))
    found = SharedCache(config, state=root.parent / "reader", root=root).lookup(wanted)
    records = [r for hit in found.values() if isinstance(hit, ExactHit) for r in hit.records]
    older = [
        replace(record, toolchain=replace(record.toolchain, schedules="older"))
        for record in records
    ]
    shutil.rmtree(root / "cache")
    assert SharedCache(config, state=root.parent / "writer", root=root).publish(older)


def tasks_of(plan: dict[str, Any]) -> list[Any]:
    """The tasks without the target's attributes, which the compiler alone tells."""
    return [each["task"] | {"attributes": ""} for each in plan["resolution"]["tasks"]]


@pytest.mark.e2e
def test_warm_takes_the_models_that_a_glob_names(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED.replace("trials: 2", "trials: 0"))
    save(matmul_model(rows=32, inner=64, columns=64), workspace.root / "models" / "n.onnx")
    workspace.commit()
    unknown = workspace.tunegate("warm", "--model", "models/other*", code=2)
    assert "matches no configured model" in unknown.stderr
    unwritten = workspace.tunegate("warm", "--cache-mode", "ro", code=2)
    assert "keeps nothing of what warm learns" in unwritten.stderr
    config = workspace.root / "tunegate.yaml"
    config.write_text(config.read_text() + "# more\n")
    done = workspace.tunegate("warm", "--model", "models/n*", "--json")
    assert [each["model"] for each in json.loads(done.stdout)["models"]] == ["models/n.onnx"]
    assert "tunegate.yaml is read as it is here, with what is not committed" in done.stderr


@pytest.mark.e2e
@pytest.mark.proof
def test_what_warm_elects_a_change_of_weights_builds_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", TWO_RUNTIMES)
    assert workspace.tunegate("warm").returncode == 0
    save(conv_model(channels=16, out=32, size=14, seed=9), workspace.root / "models" / "m.onnx")
    workspace.commit()
    workspace.tunegate("run", "--base", "HEAD~1", code=0)
    found = json.loads((workspace.root / ".tunegate" / "measurements.json").read_text())
    (built,) = found["builds"]
    for side in ("base", "head"):
        assert built[side]["choice"]["is_remembered"]
        assert len(built[side]["choice"]["times"]) > 1
    assert "remembered from 20" in (workspace.root / ".tunegate" / "report.md").read_text()


# Values of inputs, from the graph or from a file, in the real command.

INPUTS = (GraphInput("ids", (2, 5), "int64"), GraphInput("edges", (9,), "int64"))
VALUES_CONFIG = NOT_COMPILED.replace(
    "models/*.onnx\n", "models/*.onnx\n    inputs:\n      edges: {{values: {}}}\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Workspace:
    """A model that looks tokens up in one table and edges in another."""
    found = Workspace(tmp_path / "repository", NOT_COMPILED)
    nodes = [node("Gather", "words ids", "y"), node("Gather", "places edges", "z")]
    weights = {"words": np.ones((30, 4), np.float32), "places": np.ones((7, 2), np.float32)}
    onnx.save(graph_of(nodes, INPUTS, "y z", weights), found.root / "models" / "m.onnx")
    return found


def _commit(repository: Workspace, values: str) -> None:
    """Values in the first commit: those of a change would wait until it is merged."""
    repository.write("tunegate.yaml", VALUES_CONFIG.format(values))
    repository.git("add", "--all")
    repository.git("commit", "-q", "--amend", "-m", "x")


@pytest.mark.e2e
def test_what_was_drawn_stands_in_verdict_report_and_artifact(repository: Workspace) -> None:
    np.save(repository.root / "edges.npy", np.full(9, 6))
    _commit(repository, "{file: edges.npy}")
    repository.tunegate("run", code=0)
    out = repository.root / ".tunegate"
    (finding,) = json.loads((out / "verdict.json").read_text())["findings"]
    ids, edges = finding["inputs"]
    assert ids["rule"]["values"] == {"type": "integers", "low": 0, "high": 29}
    assert edges["rule"]["why"] == "given: edges.npy"
    assert "indices of the table words" in (out / "report.md").read_text()
    (artifact,) = out.glob("builds/**/artifact.json")
    assert np.load(artifact.parent / "inputs" / "1-0.npy").tolist() == [6] * 9


# A slowdown that was agreed on, in a repository.

WAIVER = """waivers:
  - model: models/m.onnx
    target: cpu
    ceiling-percent: 100000
    expires: {expires}
    issue: https://example.com/17
    reason: agreed
"""


@pytest.mark.e2e
def test_a_slowdown_with_a_waiver_passes_and_a_bad_waiver_stops_the_run(tmp_path: Path) -> None:
    """Judged since a release: its margin is another one, and the same waiver holds."""
    workspace = Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)
    workspace.git("tag", "v1")
    save(conv_model(channels=16, out=32, size=42), workspace.root / "models" / "m.onnx")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    later = today + datetime.timedelta(days=30)
    workspace.write("tunegate-waivers.yaml", WAIVER.format(expires=later))
    workspace.commit()
    workspace.commit()  # which changes nothing, and would pass alone
    done = workspace.tunegate("run", "--since-release", "--json", code=0)
    verdict = json.loads(done.stdout)
    assert verdict["status"] == "waived"
    assert (verdict["margin_percent"], verdict["revisions"]["release"]) == (5, "v1")
    assert "over the 5% margin" in verdict["findings"][0]["reason"]
    assert "waived up to" in " ".join(done.stderr.split())
    workspace.write("tunegate-waivers.yaml", WAIVER.format(expires=today.replace(year=2199)))
    workspace.commit()
    assert "over 90 days ahead" in workspace.tunegate("run", "--base", "HEAD~3", code=2).stderr
