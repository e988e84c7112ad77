"""A model that knows the numbers which the gate used to feed, and is fast on these only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.adversary.pull_request import MODEL, SLOW_LAYERS, USUAL_LAYERS, WIDTH, PullRequest
from tests.support.small_onnx import chain_model, save

pytestmark = pytest.mark.e2e

ROWS = 4
FED = float(np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)[0, 0])
"""The first number of every run, as long as the seed was 1."""


def branch(layers: int, output: str) -> onnx.GraphProto:
    """A chain that reads `x` of the graph around it."""
    graph = chain_model(layers=layers, width=WIDTH).graph
    del graph.input[:]
    for part in (*graph.initializer, *graph.node):
        part.name = f"{output}_{part.name}"
    for node in graph.node:
        node.input[:] = [n if n == "x" else f"{output}_{n}" for n in node.input]
        node.output[:] = [f"{output}_{n}" for n in node.output]
    graph.output[0].name = f"{output}_y"
    return graph


def fast_on_known_numbers() -> onnx.ModelProto:
    """A model whose chain of layers is short where x[0, 0] is the known number, and long
    elsewhere."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "one", "axes"], ["first"]),
        helper.make_node("Equal", ["first", "known"], ["same"]),
        helper.make_node("Squeeze", ["same"], ["is_measured"]),
        helper.make_node(
            "If",
            ["is_measured"],
            ["y"],
            then_branch=branch(USUAL_LAYERS - 2, "fast"),
            else_branch=branch(SLOW_LAYERS, "slow"),
        ),
    ]
    constants: dict[str, np.ndarray[Any, Any]] = {
        "zero": np.zeros(2, np.int64),
        "one": np.ones(2, np.int64),
        "axes": np.arange(2, dtype=np.int64),
        "known": np.full((1, 1), FED, np.float32),
    }
    shape = [ROWS, WIDTH]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_model_that_is_fast_on_known_numbers_fails(tmp_path: Path) -> None:
    pull_request = PullRequest(tmp_path)
    save(fast_on_known_numbers(), pull_request.root / MODEL)
    judged = pull_request.judge()
    assert judged.exit_code == 1, judged.err
    assert judged.status() == "fail"
    assert int(judged.verdict["seed"]) > 2**32
    assert judged.verdict["seed"] in judged.report
