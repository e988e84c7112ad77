"""What one job hands to the next: of other commits, of another
configuration, edited, or made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.adversary.pull_request import PullRequest
from tests.support.outcome_parts import outcome
from tests.support.small_onnx import chain_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.artifact_io import read, write
from tunegate.artifacts.plans import TuningPlan
from tunegate.system.output.artifact_file import ArtifactFile

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is twice as slow, as the job that plans leaves it."""
    pull_request = PullRequest(tmp_path_factory.mktemp("made"))
    pull_request.make_twice_as_slow()
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("plan", "--base", "main")
    assert done.returncode == 0, done.stderr
    return pull_request.root


@pytest.fixture
def planned(made: Path, tmp_path: Path) -> Workspace:
    return Workspace.copied(made, tmp_path / "checkout")


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def refusal(workspace: Workspace) -> str:
    done = workspace.tunegate("gate")
    assert done.returncode == 2, done.stderr
    assert not (workspace.root / ".tunegate" / "verdict.json").exists()
    return done.stderr


def test_a_plan_of_the_commit_before_is_not_gated(planned: Workspace) -> None:
    planned.write("README.md", "another commit")
    planned.commit()
    assert "plan.json: made for head" in refusal(planned)
    done = planned.tunegate("tune")
    assert done.returncode == 2, done.stderr
    assert "plan.json: made for head" in done.stderr


def test_a_plan_without_the_slow_model_is_not_gated(planned: Workspace) -> None:
    path = planned.root / ".tunegate" / "plan.json"
    edit(path, lambda plan: plan["changes"].update(models=[]))
    assert "plan.json: not as tunegate wrote it" in refusal(planned)


def test_a_forged_plan_is_held_against_git(planned: Workspace) -> None:
    """Made by somebody who computes the digests, too."""
    path = planned.root / ".tunegate" / "plan.json"
    plan = read(path, TuningPlan)
    (change,) = plan.changes.models
    unmeasured = replace(change, kind="renamed", change=None)
    write(path, replace(plan, changes=replace(plan.changes, models=(unmeasured,))))
    assert "not of the models that differ between its revisions" in refusal(planned)


def test_an_outcome_of_another_plan_is_not_gated(planned: Workspace) -> None:
    path = planned.root / ".tunegate" / "outcome-0.json"
    write(path, outcome(plan="a" * 64))
    assert "outcome-0.json: not of a shard of" in refusal(planned)
    edit(path, lambda found: found.update(plan="b" * 64))
    assert "outcome-0.json: not as tunegate wrote it" in refusal(planned)


def test_another_configuration_than_the_plans_is_not_gated(planned: Workspace) -> None:
    config = planned.root / "tunegate.yaml"
    config.write_text(config.read_text().replace("pairs: 4", "pairs: 4\n  size-margin-percent: 1"))
    assert "made with another configuration" in refusal(planned)


def test_an_artifact_whose_library_was_exchanged_is_not_loaded(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "checkout")
    for name in ("production", "new"):
        at = workspace.root / name
        at.mkdir()
        save(chain_model(layers=2, width=16), at / "model.onnx")
        file = "model.onnx"
        ArtifactFile(runtime="onnxruntime", file=file, inputs=(), outputs=(), threads=1).write(at)
    save(chain_model(layers=1, width=16), workspace.root / "new" / "model.onnx")
    done = workspace.tunegate("compare", "production", "new")
    assert done.returncode == 2, done.stderr
    assert "model.onnx: not the file that" in done.stderr
    assert not (workspace.root / ".tunegate").exists()
