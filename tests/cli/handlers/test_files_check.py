from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.workspace import NOT_COMPILED, Workspace
from tunegate.cli.commands.starting import DoctorOptions
from tunegate.cli.handlers import doctor
from tunegate.cli.shared_options import Common


@pytest.mark.parametrize("content", [None, np.ones((1, 3, 14, 14), np.float32)])
def test_values_that_are_missing_or_of_another_shape_are_not_well(
    content: np.ndarray | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "*.onnx\n    inputs: {x: {values: {file: x.npy}}}\n"
    workspace = Workspace(tmp_path / "w", NOT_COMPILED.replace("*.onnx\n", given))
    if content is not None:
        np.save(workspace.root / "x.npy", content)
        workspace.commit()
    common = Common(repository=workspace.root, quiet=True)
    assert doctor.run(DoctorOptions(common=common)) == 2
    said = "no such file" if content is None else "shape [1, 3, 14, 14] instead of [1, 16, 14, 14]"
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("files: ")
    assert said in line
