"""A model that is gated in two profiles, and a waiver of the model, in the real command."""

from __future__ import annotations

import datetime
import itertools
import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

pytestmark = pytest.mark.e2e

PROFILES = """    profiles:
      short: {dims: {seq: 8}}
      long: {dims: {seq: 256}}
"""
CONFIG = NOT_COMPILED.replace("*.onnx\n", f"*.onnx\n{PROFILES}") + FIRST_ANALYSIS
WAIVER = (
    "waivers: [{{model: models/m.onnx, target: cpu, ceiling-percent: 100000, expires: {}, "
    "issue: i, reason: agreed}}]\n"
)


def products(count: int) -> onnx.ModelProto:
    """Products of a sequence of any length, one after the other."""
    names = ["x", *(f"h{n}" for n in range(count - 1)), "y"]
    nodes = [node("MatMul", f"{a} w", b) for a, b in itertools.pairwise(names)]
    weight = np.eye(96, dtype=np.float32)
    model = graph_of(nodes, [GraphInput("x", (1, 96), "float32")], "y", {"w": weight})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "seq"
    return model


def test_each_profile_is_gated_and_a_waiver_of_the_model_covers_them(tmp_path: Path) -> None:
    """Eight times the work, which shows at 256 steps."""
    repository = Workspace(tmp_path / "repository", CONFIG)
    later = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=9)
    repository.write("tunegate-waivers.yaml", WAIVER.format(later))
    repository.begin_with(products(2))
    onnx.save(products(16), repository.root / "models" / "m.onnx")
    repository.commit()
    done = repository.tunegate("run", "--base", "HEAD~1")
    verdict = json.loads((repository.root / ".tunegate" / "verdict.json").read_text())
    found = {finding["model"]: finding for finding in verdict["findings"]}
    assert set(found) == {"models/m.onnx@long", "models/m.onnx@short"}
    long = found["models/m.onnx@long"]
    assert (done.returncode, long["status"]) == (0, "waived"), long["reason"]
    assert [each["shape"] for each in long["inputs"]] == [[256, 96]]
