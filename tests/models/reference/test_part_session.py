from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np

from tests.support.small_onnx import one_node_model, save
from tunegate.models.reference.part_session import opened_part, reference_version


def test_a_part_runs_with_the_threads_of_its_target(tmp_path: Path) -> None:
    session = opened_part(save(one_node_model("Relu"), tmp_path / "m.onnx"), 2)
    assert session.get_session_options().intra_op_num_threads == 2
    assert not session.run(None, {"x": np.full((4, 4), -1, np.float32)})[0].any()


def test_its_version_is_that_of_its_distribution() -> None:
    assert reference_version() == {"onnxruntime": version("onnxruntime")}
