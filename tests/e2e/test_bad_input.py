"""Each mistake is one clear line that names the file and the fix, exit
code 2, and nothing is lost."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated.small_disk import mounted_disk
from tests.support.small_onnx import conv_model, matmul_model, save
from tests.support.workspace import COMPILED, FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e


@pytest.fixture
def repository(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "repository")


def refusal(repository: Workspace, *arguments: str) -> str:
    """The one line of a run that was refused."""
    done = repository.tunegate(*(arguments or ("run",)), code=2)
    errors = [line for line in done.stderr.splitlines() if line.startswith("tunegate: error:")]
    assert len(errors) == 1
    assert "Traceback" not in done.stderr
    return errors[0]


def test_one_unusable_model_is_one_finding_and_the_others_are_gated(repository: Workspace) -> None:
    models = repository.root / "models"
    models.joinpath("absent.onnx").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 3\n"
    )
    models.joinpath("cut.onnx").write_bytes(models.joinpath("m.onnx").read_bytes()[:300])
    save(matmul_model(rows="batch"), models / "open.onnx")
    save(matmul_model(), models / "fine.onnx")
    repository.write("tunegate.yaml", NOT_COMPILED)
    repository.commit()
    done = repository.tunegate("run")
    verdict = json.loads((repository.root / ".tunegate" / "verdict.json").read_bytes())
    found = {each["model"]: (each["status"], each["reason"]) for each in verdict["findings"]}
    assert {model: status for model, (status, _) in found.items()} == {
        "models/absent.onnx": "error",
        "models/cut.onnx": "error",
        "models/fine.onnx": "new",
        "models/open.onnx": "error",
    }, done.stderr
    assert done.returncode == 2
    assert "Git LFS" in found["models/absent.onnx"][1]
    assert 'Likely, as keys of its entry: dims: {"batch": 1}.' in found["models/open.onnx"][1]
    printed = " ".join(done.stderr.split())
    assert "cut short" in printed
    assert "is dynamic" in printed


def test_a_shard_that_the_plan_does_not_have(repository: Workspace) -> None:
    assert repository.tunegate("plan").returncode == 0
    assert "--shard 7: not in" in refusal(repository, "tune", "--shard", "7")


def test_a_gate_without_a_plan(repository: Workspace) -> None:
    assert "plan.json: not found. It is written by an earlier step" in refusal(repository, "gate")


def test_nothing_in_the_working_tree_changes(repository: Workspace) -> None:
    before = {
        p: p.read_bytes()
        for p in repository.root.rglob("*")
        if p.is_file() and ".git" not in p.parts
    }
    refusal(repository, "run", "--base", "nowhere", "--out", str(repository.root.parent / "out"))
    after = {
        p: p.read_bytes()
        for p in repository.root.rglob("*")
        if p.is_file() and ".git" not in p.parts
    }
    assert before == after


def test_a_shard_of_a_plan_that_has_none(repository: Workspace) -> None:
    repository.write("tunegate.yaml", NOT_COMPILED)
    repository.commit()
    assert repository.tunegate("plan", "--base", "main").returncode == 0
    assert "which has none: nothing is left to tune" in refusal(repository, "tune", "--shard", "0")
    assert "none: no model is compared" in refusal(repository, "measure", "--shard", "0")


# A disk that fills up while tunegate runs: one clear error, of the machine and not of the model.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "small") as place:
        yield place


@pytest.mark.parametrize(
    ("free_bytes", "is_temporary"), [(0, False), (8192, False), (24576, False), (8192, True)]
)
def test_a_run_out_of_room_says_so(
    tmp_path: Path,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_bytes: int,
    is_temporary: bool,
) -> None:
    repository = Workspace(tmp_path / "repository")
    usage = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(bytes(usage.f_bavail * usage.f_frsize - free_bytes))
    place = small_disk if is_temporary else small_disk / "out"
    monkeypatch.setenv("TMPDIR", str(small_disk if is_temporary else tmp_path))
    out = tmp_path / "out" if is_temporary else place
    done = repository.tunegate("run", "--out", str(out), code=4)
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("tunegate: error:")]
    assert f"a disk is full, that of {place}" in error
    assert "Traceback" not in done.stderr


# A run that may not measure anything builds with what similar layers have, and says so.


@pytest.mark.proof
def test_transferred_schedules_without_a_budget_are_said_to_be_unverified(tmp_path: Path) -> None:
    config = COMPILED.replace("trials: 2", "trials: 4") + FIRST_ANALYSIS
    workspace = Workspace(tmp_path / "w", config)
    # With three channels out no default schedule is good, so that any other one is used.
    workspace.begin_with(conv_model(channels=16, out=3, size=28))
    for stage in ("plan", "tune"):
        workspace.tunegate(stage, code=0)
    save(conv_model(channels=16, out=3, size=30), workspace.root / "models" / "wider.onnx")
    workspace.commit()
    done = workspace.tunegate("run", "--base", "HEAD~1", "--minutes", "0", "--json")
    verdict = json.loads(done.stdout)
    assert verdict["tuning"]["trials"] == 0
    assert verdict["tuning"]["transfer"] >= 1
    report = (workspace.root / ".tunegate" / "report.md").read_text()
    measured = json.loads((workspace.root / ".tunegate" / "measurements.json").read_text())
    head = measured["builds"][0]["head"]
    transferred = [task for task in head["tasks"] if task["source"] == "transfer"]
    # One that was slower in the model than the default schedule is left out, and the report says
    # so: which of the two it is, the machine decides.
    assert bool(transferred) == ("a schedule of another shape: it was never measured" in report)
    assert bool(head["dropped"]) == ("schedules where others made the model slower" in report)
    assert transferred or head["dropped"]
    assert all(not task["verified"] and task["ms"] is None for task in transferred)
