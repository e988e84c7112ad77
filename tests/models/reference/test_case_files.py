from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tunegate.artifacts.inputs import Files, InputRule
from tunegate.models.reference import error_samples as case_files
from tunegate.models.reference.error_samples import CaseFiles
from tunegate.system.output.artifact_file import ArtifactTensor

X = ArtifactTensor("x", (2,), "float32", InputRule(Files(("/a", "/b"), ("a.npy", "b.npy"))))
ONES = np.ones(2, np.float32)


def test_a_case_has_the_arrays_of_both_and_what_they_are(tmp_path: Path) -> None:
    kept = CaseFiles(tmp_path / "cases", [X], ["../y", "labels"])
    maps = [{"cat": 0.25}]
    for case in range(3):
        kept.add(case, {"x": ONES * case}, [ONES, maps], [ONES * 2, maps])
    described = json.loads((tmp_path / "cases" / "cases.json").read_text())
    assert described["inputs"] == ["x"]
    assert described["outputs"] == ["../y", "labels (1 maps) keys", "labels (1 maps) values"]
    assert described["cases"][2] == {"file": "case-0002.npz", "given": {"x": "a.npy"}}
    with np.load(tmp_path / "cases" / "case-0002.npz", allow_pickle=False) as case_file:
        found = {name: case_file[name].tolist() for name in case_file}
    assert found == {
        "input_0": [2.0, 2.0],
        "reference_0": [2.0, 2.0],
        "reference_1": ["0: 'cat'"],
        "reference_2": [0.25],
        "candidate_0": [1.0, 1.0],
        "candidate_1": ["0: 'cat'"],
        "candidate_2": [0.25],
    }


def test_cases_that_take_too_much_room_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_files, "MAX_CASES_BYTES", 50)
    kept = CaseFiles(tmp_path, [X], ["y"])
    for case in range(3):
        kept.add(case, {"x": ONES}, [ONES], [ONES])
    assert [each.name for each in sorted(tmp_path.glob("*.npz"))] == [
        "case-0000.npz",
        "case-0001.npz",
    ]
