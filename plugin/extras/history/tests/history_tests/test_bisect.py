"""`tunegate bisect` in a repository whose model was retrained, renamed, broken and made slow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import COMPILED, FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e
COMMITS = 7
RENAMED, BROKEN, SLOW, AGAIN = 2, 3, 5, 6


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Seven commits after the tag v1; each says its number. The renamed model is retrained in the
    same commit, and the slow one comes in by a merge of two commits."""
    workspace = Workspace(tmp_path_factory.mktemp("bisect") / "w", NOT_COMPILED + FIRST_ANALYSIS)
    models, name, out = workspace.root / "models", "m.onnx", 32
    workspace.git("tag", "v1")
    for number in range(1, COMMITS + 1):
        if number == SLOW:
            out = 512
            workspace.git("checkout", "-q", "-b", "side")
            workspace.git("commit", "-q", "--allow-empty", "-m", "aside")
        if number == RENAMED:
            (models / name).rename(models / "encoder.onnx")
            name = "encoder.onnx"
        if number == BROKEN:
            (models / name).write_bytes(b"no model")
        if number in (1, RENAMED, BROKEN + 1, SLOW, AGAIN):
            save(conv_model(channels=16, out=out, size=14, seed=number), models / name)
        workspace.git("add", "--all")
        workspace.git("commit", "-q", "--allow-empty", "-m", f"change {number}")
        if number == SLOW:
            workspace.git("checkout", "-q", "main")
            workspace.git("merge", "-q", "--no-ff", "side", "-m", f"change {number}")
    return workspace


def test_the_commit_is_found_by_few_measurements(workspace: Workspace) -> None:
    """In a directory of the repository, whose configuration counts there, too."""
    done = workspace.tunegate("bisect", "v1..HEAD", "--json", "--repository", "models")
    assert done.returncode == 0, done.stderr
    assert "with TVM" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["finding"], found["subjects"]) == ("real", [f"change {SLOW}"])
    assert found["measurements"] < COMMITS  # a busy machine measures some of them again
    assert found["layers"] == ["conv"]
    assert f'"change {SLOW}"' in done.stderr


def test_one_model_at_both_ends_is_nothing_to_find_and_not_measured(workspace: Workspace) -> None:
    line = ("bisect", "HEAD~1..HEAD", "--model", "./models/encoder.onnx", "--json")
    done = workspace.tunegate(*line)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["finding"], found["measurements"]) == ("method", 0)
    assert "nothing to find (both ends have the same model" in done.stderr


@pytest.mark.proof
def test_a_compiled_model_is_searched_without_a_trial(tmp_path: Path) -> None:
    """The configuration allows two trials for each task."""
    workspace = Workspace(tmp_path / "w", COMPILED + FIRST_ANALYSIS)
    save(conv_model(channels=16, out=512, size=14, seed=1), workspace.root / "models" / "m.onnx")
    workspace.git("commit", "-q", "--all", "-m", "slow")
    done = workspace.tunegate("bisect", "HEAD~1..HEAD", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["finding"], found["subjects"]) == ("real", ["slow"])
    assert "conv" in found["layers"]
    tuned = json.loads((workspace.root / ".tunegate" / "outcome-0.json").read_text())["tasks"]
    assert {each["trials"] for each in tuned} == {0}


@pytest.mark.proof
def test_a_range_without_a_slowdown_has_nothing_to_find(workspace: Workspace) -> None:
    since = f"HEAD~{COMMITS - SLOW}..HEAD"
    done = workspace.tunegate("bisect", since, "--json", "--margin-percent", "90")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["finding"], found["suspects"], found["measurements"]) == ("noise", [], 1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["v1"], "is not a range"),
        (["HEAD..v1"], "no ancestor"),
        (["v1..HEAD", "--model", "encoder.onnx"], "Did you mean models/encoder.onnx?"),
        (["v1..HEAD", "--model", "models/m.onnx"], "only the fast end has it"),
        (["v1..HEAD", "--model", "models/other.onnx"], "neither end has it"),
        (["v1..HEAD", "--target", "gpu"], "the configuration has cpu"),
        (["v1..v1"], "the same commit"),
        (["HEAD~1..HEAD"], "no configured model differs"),
        (["v1..HEAD", "--shape", "z=1"], "ends cannot be compared: inputs.z: the model has no"),
    ],
)
def test_what_cannot_be_searched_is_one_line(
    workspace: Workspace, line: list[str], told: str, tmp_path: Path
) -> None:
    done = workspace.tunegate("bisect", *line, "--out", str(tmp_path / "out"))
    assert done.returncode == (4 if "compared" in told else 2), done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
