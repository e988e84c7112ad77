"""Values of inputs, from the graph or from a file, in the real command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e

INPUTS = (GraphInput("ids", (2, 5), "int64"), GraphInput("edges", (9,), "int64"))
CONFIG = NOT_COMPILED.replace(
    "models/*.onnx\n", "models/*.onnx\n    inputs:\n      edges: {{values: {}}}\n"
)


@pytest.fixture
def repository(tmp_path: Path) -> Workspace:
    """A model that looks tokens up in one table and edges in another."""
    found = Workspace(tmp_path / "repository", NOT_COMPILED)
    nodes = [node("Gather", "words ids", "y"), node("Gather", "places edges", "z")]
    weights = {"words": np.ones((30, 4), np.float32), "places": np.ones((7, 2), np.float32)}
    model = graph_of(nodes, INPUTS, "y z", weights)
    onnx.save(model, found.root / "models" / "m.onnx")
    return found


def _given(repository: Workspace, values: str) -> None:
    """Values in the first commit: those of a change would wait until it is merged."""
    repository.write("tunegate.yaml", CONFIG.format(values))
    repository.git("add", "--all")
    repository.git("commit", "-q", "--amend", "-m", "x")


def test_what_was_drawn_stands_in_verdict_report_and_artifact(repository: Workspace) -> None:
    np.save(repository.root / "edges.npy", np.full(9, 6))
    _given(repository, "{file: edges.npy}")
    done = repository.tunegate("run")
    assert done.returncode == 0, done.stderr
    out = repository.root / ".tunegate"
    (finding,) = json.loads((out / "verdict.json").read_text())["findings"]
    ids, edges = finding["inputs"]
    assert ids["rule"]["values"] == {"type": "integers", "low": 0, "high": 29}
    assert edges["rule"]["why"] == "given: edges.npy"
    assert "indices of the table words" in (out / "report.md").read_text()
    (artifact,) = out.glob("builds/**/artifact.json")
    assert np.load(artifact.parent / "inputs" / "1-0.npy").tolist() == [6] * 9


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{file: edges.npy}", "edges.npy: no such file in this revision: commit it"),
        ("{file: ../edges.npy}", "../edges.npy lies outside of the repository"),
        ("{low: 1.5, high: 2}", "1.5 to 2 are no integers, and the input is int64"),
        ("{low: 0, high: 7}", "ONNX Runtime does not run on the values that are given for edges"),
    ],
)
def test_values_that_cannot_be_are_one_line_and_exit_2(
    repository: Workspace, values: str, said: str
) -> None:
    _given(repository, values)
    done = repository.tunegate("run")
    assert done.returncode == 2, done.stderr
    report = repository.root / ".tunegate" / "report.md"
    shown = done.stderr + (report.read_text() if report.exists() else "")
    assert said in " ".join(shown.split())
    assert "Traceback" not in done.stderr
