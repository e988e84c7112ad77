from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.small_onnx import one_node_model, save
from tunegate.artifacts.builds import NumericCheck
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.edges.reference.comparison import DidNotRun, compared
from tunegate.edges.reference.onnx_runtime import onnxruntime

Run = Callable[[Mapping[str, Any]], Sequence[Any]]


@pytest.fixture
def found(tmp_path: Path) -> Callable[[Run], NumericCheck | DidNotRun]:
    """What is said of a function beside a Relu."""
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    tensors = [ArtifactTensor(name, shape(model), "float32") for name in ("x", "y")]
    artifact = ArtifactFile(
        runtime="any", file="m.onnx", inputs=(tensors[0],), outputs=(tensors[1],), threads=1
    )
    return lambda run: compared(run, model, artifact, (1, 2))


def shape(model: Path) -> tuple[int, ...]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return tuple(session.get_inputs()[0].shape)


def test_equal_numbers_pass(found: Callable[[Run], NumericCheck]) -> None:
    check = found(lambda feed: [np.maximum(feed["x"], 0)])
    assert (check.passed, check.max_absolute, check.detail) == (True, 0.0, "")
    assert [output.name for output in check.outputs] == ["y"]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda feed: [np.maximum(feed["x"], 0) * 1.01], "output y is off by"),
        (lambda feed: [np.maximum(feed["x"], 0)[:0]], "output y is shape"),
        (lambda feed: [], "0 outputs instead of 1"),
        (lambda feed: [feed["x"] * np.nan], "not a number where one is expected"),
    ],
)
def test_other_numbers_do_not(found: Callable[[Run], NumericCheck], run: Run, said: str) -> None:
    check = found(run)
    assert not check.passed
    assert said in check.detail


def test_what_does_not_run_is_told_by_its_last_line(found: Callable[[Run], DidNotRun]) -> None:
    def run(feed: Mapping[str, Any]) -> Sequence[Any]:
        raise RuntimeError("in a kernel\nno memory")

    assert found(run) == DidNotRun("no memory")
