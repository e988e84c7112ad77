"""A model is opened whole where the compiler takes it, and in parts where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.support.graphs import GraphInput, graph_of, node
from tests.support.small_onnx import one_node_model, parts_model, save

from tunegate.compiler.opening import OpenModel
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.tune.protocol import ModelFile
from tunegate_hybrid.open_parts import SplitModel
from tunegate_hybrid.opening import OpenedModel, opened_in_parts


def opened(model: onnx.ModelProto, place: Path) -> OpenedModel:
    file = ModelFile(file=str(save(model, place / "m.onnx")), path="m.onnx", shapes={})
    return opened_in_parts(file, TargetConfig(name="cpu"), place / "into")


def test_what_the_compiler_takes_is_opened_whole(tmp_path: Path) -> None:
    assert isinstance(opened(one_node_model("Relu"), tmp_path), OpenModel)


def test_the_kernels_of_parts_are_those_that_they_would_be_in_a_whole_model(
    tmp_path: Path,
) -> None:
    found = opened(parts_model(maps=3), tmp_path)
    assert isinstance(found, SplitModel)
    assert "Binarizer" in found.reason
    whole = parts_model(maps=3)
    nodes = [node for node in whole.graph.node if node.name != "bits"]
    nodes[6].input[0] = "before_2"
    del whole.graph.node[:]
    whole.graph.node.extend(nodes[:6])
    whole.graph.output[0].name = "before_2"
    alone = opened(whole, tmp_path / "alone")
    assert {f.workload.digest for f in alone.functions} == {
        f.workload.digest for f in found.functions
    }


def test_a_model_with_no_part_that_is_worth_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="operator Binarizer"):
        opened(parts_model(maps=3, size=10), tmp_path)


def after_a_product(
    nodes: Sequence[onnx.NodeProto], outputs: str, weights: Mapping[str, Any], columns: int = 64
) -> onnx.ModelProto:
    """A product `a` of 512 rows, which is worth compiling, and what these nodes make of it."""
    first = node("MatMul", "x w", "a")
    known = {"w": np.ones((64, columns), np.float32), **weights}
    return graph_of([first, *nodes], [GraphInput("x", (512, 64), "float32")], outputs, known)


def body(inputs: str, kinds: str, node_: onnx.NodeProto, outputs: str) -> onnx.GraphProto:
    """A graph inside of a node: rows `f`, a number `i`, a condition `c`."""
    known = {
        "f": (TensorProto.FLOAT, [64]),
        "m": (TensorProto.FLOAT, [512, 64]),
        "i": (TensorProto.INT64, []),
        "c": (TensorProto.BOOL, []),
    }
    values = [
        helper.make_tensor_value_info(name, *known[kind])
        for name, kind in zip((inputs + " " + outputs).split(), kinds, strict=True)
    ]
    read = len(inputs.split())
    passed = helper.make_node("Identity", [outputs.split()[1]], [outputs.split(maxsplit=1)[0]])
    return helper.make_graph([node_, passed], "body", values[:read], values[read:])


LOOPED = body("i c m", "icmcm", helper.make_node("Identity", ["m"], ["out"]), "more out")
LOOPED.node[1].input[0] = "c"
SCANNED = body("state row", "ffff", helper.make_node("Add", ["state", "row"], ["out"]), "new out")


@pytest.mark.parametrize(
    ("operator", "model"),
    [
        (
            "LSTM",
            after_a_product(
                [
                    node("Reshape", "a steps", "b"),
                    node("LSTM", "b in back", "h", hidden_size=32),
                    node("Relu", "h", "y"),
                ],
                "y",
                {
                    "in": np.zeros((1, 128, 64), np.float32),
                    "back": np.zeros((1, 128, 32), np.float32),
                    "steps": np.array([512, 1, 64]),
                },
            ),
        ),
        (
            "Loop",
            after_a_product(
                [node("Loop", "n yes a", "y", body=LOOPED)],
                "y",
                {"n": np.array(3), "yes": np.array(True)},
            ),
        ),
        (
            "Scan",
            after_a_product(
                [node("Scan", "zero a", "f y", body=SCANNED, num_scan_inputs=1)],
                "f y",
                {"zero": np.zeros(64, np.float32)},
            ),
        ),
        (
            "NonMaxSuppression",
            after_a_product(
                [
                    node("Reshape", "a boxes", "b"),
                    node("NonMaxSuppression", "b scores most", "y"),
                ],
                "y",
                {
                    "scores": np.ones((1, 1, 4096), np.float32),
                    "most": np.array([9]),
                    "boxes": np.array([1, 4096, 4]),
                },
                columns=32,
            ),
        ),
    ],
)
def test_what_the_compiler_lacks_is_named_and_the_rest_is_compiled(
    operator: str, model: onnx.ModelProto, tmp_path: Path
) -> None:
    """Steps over 256, graphs inside of nodes, and sizes that depend on data."""
    found = opened(model, tmp_path)
    assert isinstance(found, SplitModel)
    assert f"{operator} " in found.reason
    assert [part.is_compiled for part in found.parts] == [True, False]
