"""A study as a user runs it: measured once, then for nothing, in shards, and cut short."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e
STUDY = "models: [a.onnx, b.onnx]\naxes: {runtime: [onnxruntime]}\nrounds: 3\n"


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two models in two shards, one after the other in one place."""
    workspace = Workspace(tmp_path_factory.mktemp("study") / "w", NOT_COMPILED)
    for name, width in (("a", 64), ("b", 96)):
        save(matmul_model(rows=8, inner=width, columns=width), workspace.root / f"{name}.onnx")
    workspace.write("study.yaml", STUDY)
    for shard in ("1/2", "2/2"):
        done = workspace.tunegate("study", "study.yaml", "--shard", shard)
        assert done.returncode == 0, done.stderr
        assert "1 cell of 1 measured" in done.stdout
    return workspace


def test_shards_are_one_study_wherever_their_files_lie(studied: Workspace) -> None:
    cells = studied.root / ".tunegate" / "study" / "cells"
    assert len(list(cells.iterdir())) == 2
    elsewhere = studied.root / "elsewhere"
    shutil.copytree(cells, elsewhere / "study" / "cells")
    done = studied.tunegate("study", "study.yaml", "--report", "--out", "elsewhere", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [len(each["launches"]) for each in found["cells"]] == [3] * 2
    assert {each["setting"]["model"] for each in found["fronts"]} == {"a", "b"}
    assert "--only=model=b" in found["commands"][-1]


def test_what_is_unchanged_is_not_measured_again(studied: Workspace) -> None:
    cells = studied.root / ".tunegate" / "study" / "cells"
    before = {each.name: each.stat().st_mtime_ns for each in cells.iterdir()}
    done = studied.tunegate("study", "study.yaml")
    assert done.returncode == 0, done.stderr
    assert {each.name: each.stat().st_mtime_ns for each in cells.iterdir()} == before
    page = (studied.root / ".tunegate" / "study.html").read_text()
    assert "Pareto fronts" in page


def test_a_part_that_nobody_measured_is_told(studied: Workspace) -> None:
    done = studied.tunegate("study", "study.yaml", "--report", "--out", "empty")
    assert done.returncode == 3
    assert "2 cells not finished" in done.stdout


def test_a_part_that_is_measured_alone_leaves_the_others_on_the_page(studied: Workspace) -> None:
    done = studied.tunegate("study", "study.yaml", "--only", "model=a", "--json")
    assert done.returncode == 0, done.stderr
    assert [len(each["launches"]) for each in json.loads(done.stdout)["cells"]] == [3, 3]
