"""An artifact of parts, loaded by what it says of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.small_onnx import one_node_model, save

from tunegate.errors import ArtifactError
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate_hybrid.loader import HybridArtifact
from tunegate_hybrid.plan_file import PartsPlan, PartTensor, PlannedPart

X, Y = (ArtifactTensor(name, (4, 4), "float32") for name in ("x", "y"))
FEED = {"x": np.full((4, 4), -1, np.float32)}
ARTIFACT = ArtifactFile(runtime="hybrid", file="plan.json", inputs=(X,), outputs=(Y,), threads=1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    save(one_node_model("Relu"), tmp_path / "part-0.onnx")
    ends = tuple((PartTensor(each.name, each.dtype, each.shape),) for each in (X, Y))
    part = PlannedPart(is_compiled=False, file="part-0.onnx", inputs=ends[0], outputs=ends[1])
    PartsPlan(parts=(part,), outputs=("y",)).write(tmp_path)
    return tmp_path


def test_its_parts_run_and_their_operators_are_timed(directory: Path) -> None:
    loaded = HybridArtifact(directory, ARTIFACT)
    (output,) = loaded.run(FEED)
    assert not output.any()
    loaded.bound(FEED)()
    assert list(loaded.operators_ms(FEED, 2)) == ["odd"]


def test_a_plan_that_was_edited_is_no_plan(directory: Path) -> None:
    plan = directory / "plan.json"
    plan.write_text(plan.read_text().replace("part-0.onnx", "part-1.onnx"))
    with pytest.raises(ArtifactError):
        HybridArtifact(directory, ARTIFACT)
