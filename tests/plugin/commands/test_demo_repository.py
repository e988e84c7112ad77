from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from tunegate.commands import demo_repository
from tunegate.edges.models.graph import graph_digest


def test_the_demo_starts_with_one_commit_of_a_model(tmp_path: Path) -> None:
    repository = demo_repository.create(tmp_path / "r", cache=tmp_path / "c", minutes=2)
    assert repository.text("rev-list", "--count", "HEAD") == "1"
    assert (tmp_path / "r" / demo_repository.DEMO_MODEL).exists()


def test_the_second_act_changes_weights_only_and_the_third_the_graph(tmp_path: Path) -> None:
    demo_repository.create(tmp_path / "r", cache=tmp_path / "c", minutes=2)
    first = graph_digest((tmp_path / "r" / demo_repository.DEMO_MODEL).read_bytes())
    assert graph_digest(demo_repository.retrained().SerializeToString()) == first
    assert graph_digest(demo_repository.slowed().SerializeToString()) != first


def test_the_slowed_model_still_runs() -> None:
    session = onnxruntime.InferenceSession(demo_repository.slowed().SerializeToString())
    name = session.get_inputs()[0].name
    (output,) = session.run(None, {name: np.zeros((1, 3, 224, 224), np.float32)})
    assert np.isfinite(output).all()
