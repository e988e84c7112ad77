"""The example examples/many-models.yml as GitHub runs it: three models, measured by two runners."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.e2e.workflows.pull_request import Files, PullRequest
from tests.e2e.workflows.workflow_runner import Job, Trouble
from tests.support.small_onnx import chain_model, conv_model, matmul_model
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED

pytestmark = [pytest.mark.e2e, pytest.mark.pipelines, pytest.mark.timeout(900)]

CONFIG = (
    NOT_COMPILED.replace("url: cache", 'mode: "off"') + FIRST_ANALYSIS + "  margin-percent: 40\n"
)


def body(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString())


BEFORE: Files = {
    "models/a.onnx": body(conv_model(channels=8, out=8, size=16)),
    "models/b.onnx": body(matmul_model(rows=8, inner=16, columns=16)),
    "models/c.onnx": body(chain_model(layers=8, width=256)),
}
AFTER: Files = {
    "models/a.onnx": body(conv_model(channels=64, out=128, size=48)),
    "models/b.onnx": body(matmul_model(rows=512, inner=512, columns=512)),
    "models/c.onnx": body(chain_model(layers=2, width=64)),
}
STATUSES = {"models/a.onnx": "fail", "models/b.onnx": "fail", "models/c.onnx": "pass"}
Opened = Callable[[Files], PullRequest]


@pytest.fixture
def opened(tmp_path: Path, node_modules: Path) -> Opened:
    start: Files = {"tunegate.yaml": CONFIG.encode(), **BEFORE}
    return lambda change: PullRequest(tmp_path, node_modules, start=start, change=change)


def verdict_of(jobs: dict[str, Job], name: str = "verdict") -> dict[str, Any]:
    (leg,) = jobs[name].legs
    found: dict[str, Any] = json.loads((leg.workspace / ".tunegate" / "verdict.json").read_text())
    return found


def statuses(found: dict[str, Any]) -> dict[str, str]:
    return {each["model"]: each["status"] for each in found["findings"]}


def test_two_runners_come_to_the_verdict_of_one(opened: Opened) -> None:
    pull = opened(AFTER)
    jobs = pull.run("many-models.yml", shards=2)
    found = verdict_of(jobs)
    assert statuses(found) == STATUSES, jobs["verdict"].log
    whole = verdict_of(pull.run("three-jobs.yml", into="whole"), "gate")
    assert statuses(whole) == statuses(found)
    for key in ("status", "exit_code", "margin_percent", "revisions", "policy_changes"):
        assert whole[key] == found[key]
    assert whole["origin"]["rules"] == found["origin"]["rules"]
    results = jobs["verdict"].legs[0].workspace / ".tunegate"
    for name in ("report.md", "report.html", "junit.xml", "sarif.json"):
        text = (results / name).read_text()
        assert all(model in text for model in ("models/a.onnx", "models/b.onnx")), name
    assert len(jobs["measure"].legs) == 2
    assert jobs["required"].result == "failure"


@pytest.mark.parametrize("how", ["lost", "cancelled"])
def test_a_shard_that_does_not_come_back_is_named_and_is_no_pass(how: str, opened: Opened) -> None:
    shards = [("measure", 0)]
    trouble = Trouble(lost=shards) if how == "lost" else Trouble(cancelled=shards)
    change: Files = {"models/c.onnx": AFTER["models/c.onnx"]}
    jobs = opened(change).run("many-models.yml", trouble, shards=2)
    found = verdict_of(jobs)
    assert (found["status"], found["exit_code"]) == ("invalid-env", 4)
    assert "Run tunegate measure --shard 0 again" in found["findings"][0]["reason"]
    assert jobs["required"].result == "failure"


def test_a_change_of_docs_measures_nothing_and_passes(opened: Opened) -> None:
    jobs = opened({"README.md": b"words\n"}).run("many-models.yml", shards=2)
    assert {name: job.result for name, job in jobs.items()} == {
        "plan": "success",
        "tune": "skipped",
        "measure": "skipped",
        "verdict": "success",
        "required": "success",
    }
