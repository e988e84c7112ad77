"""Faults that end a collection before anything is measured take one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from tests.support.workspace import COMPILED, Workspace

from research.experience import collect
from research.experience.collect import end_of_collection


def collected(workspace: Workspace, *arguments: str) -> int:
    out = ("--repository", str(workspace.root), "--out", str(workspace.root.parent / "out"))
    return collect.main([*out, *arguments])


def test_without_time_nothing_is_measured_and_nothing_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    assert collected(workspace, "--minutes", "0", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["rows"], found["trials"]) == (0, 0, 0)
    assert (found["layers"], found["why"]) == (1, "the budget is spent")


@pytest.mark.parametrize(
    ("config", "arguments", "said"),
    [
        (COMPILED, ["--cache-mode", "ro"], "cache.mode: ro keeps nothing of what is measured"),
        (COMPILED, ["--model", "other/*"], "--model: other/* matches no configured model"),
        (
            COMPILED,
            ["--target", "gpu"],
            "--target: gpu is no target. Name one of these: cpu",
        ),
    ],
)
def test_what_cannot_be_kept_or_measured_is_a_usage_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    config: str,
    arguments: list[str],
    said: str,
) -> None:
    workspace = Workspace(tmp_path / "w", config)
    assert collected(workspace, *arguments) == 2
    assert said in capsys.readouterr().err


def test_models_without_a_layer_to_draw_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path / "w")
    node = helper.make_node("Relu", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 17)]
    workspace.begin_with(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert collected(workspace) == 2
    assert "no convolution and no product of float32 with known sizes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("is_cancelled", "has_all", "is_exhausted", "why"),
    [
        (True, True, True, "cancelled"),
        (False, True, True, "these were asked for"),
        (False, False, True, "every layer that is drawn is measured already"),
        (False, False, False, "the budget is spent"),
    ],
)
def test_a_cancellation_is_told_whatever_else_ended_with_it(
    is_cancelled: bool, has_all: bool, is_exhausted: bool, why: str
) -> None:
    said = end_of_collection(is_cancelled=is_cancelled, has_all=has_all, is_exhausted=is_exhausted)
    assert said == why
