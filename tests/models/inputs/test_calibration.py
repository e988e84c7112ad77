from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tunegate.artifacts.inputs import Files, InputRule, Normal
from tunegate.errors import ModelError
from tunegate.models.inputs.calibration import MAX_INPUTS, calibration
from tunegate.system.output.artifact_file import ArtifactTensor

SEEDS = tuple(range(100))


def cases(folder: Path, number: int) -> ArtifactTensor:
    files = [folder / f"{case}.npy" for case in range(number)]
    for case, file in enumerate(files):
        np.save(file, np.full(2, case, "float32"))
    names = tuple(file.name for file in files)
    return ArtifactTensor("x", (2,), "float32", InputRule(Files(tuple(map(str, files)), names)))


@pytest.mark.parametrize(("number", "used"), [(2, 1), (10, 2), (200, MAX_INPUTS)])
def test_no_case_both_calibrates_and_tells_the_error(
    tmp_path: Path, number: int, used: int
) -> None:
    found, left = calibration([cases(tmp_path, number)], {"x"}, SEEDS, "m.onnx")
    learned = {f"{feed['x'][0]:.0f}.npy" for feed in found}
    assert len(learned) == used
    assert used == 1 or learned != {f"{case}.npy" for case in range(used)}
    (rule,) = (each.rule for each in left)
    assert rule is not None
    assert isinstance(rule.values, Files)
    assert {*rule.values.names} == {f"{case}.npy" for case in range(number)} - learned


def test_what_is_drawn_calibrates_on_inputs_of_its_own_seeds() -> None:
    drawn = ArtifactTensor("x", (2,), "float32", InputRule(Normal()))
    found, left = calibration([drawn], {"x"}, SEEDS, "m.onnx")
    assert len([*found]) == MAX_INPUTS
    assert len({float(feed["x"][0]) for feed in found}) == MAX_INPUTS
    assert left == (drawn,)


def test_an_input_without_values_is_named() -> None:
    floats = [ArtifactTensor(name, (2,), "float32") for name in ("x", "state")]
    index = ArtifactTensor("index", (1,), "int64")
    with pytest.raises(ModelError, match="there are none for state: write them under inputs"):
        calibration([*floats, index], {"x"}, SEEDS, "m.onnx")
