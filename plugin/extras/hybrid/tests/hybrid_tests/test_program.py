"""Parts run one after the other: with shapes that depend on data, with texts, again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tunegate.models.reference.value_types import value_types
from tunegate_hybrid.model_graph import ModelGraph
from tunegate_hybrid.partition import partition
from tunegate_hybrid.plan_file import PartsPlan, PartTensor, PlannedPart
from tunegate_hybrid.program import PartsProgram


def program(nodes: list[onnx.NodeProto], outputs: list[str], directory: Path) -> PartsProgram:
    """A part for each kind of node; those that could be compiled are under ONNX Runtime, too."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    cut = ModelGraph(proto, value_types(proto))
    planned = []
    relus = {place for place, node in enumerate(nodes) if node.op_type == "Relu"}
    for number, part in enumerate(partition(cut.nodes, relus, cut.outputs)):
        onnx.save(cut.cut(part), directory / f"{number}.onnx")
        ends = (
            tuple(PartTensor(n, cut.type_of(n).dtype, cut.type_of(n).shape) for n in names)
            for names in (part.inputs, part.outputs)
        )
        inputs, made = ends
        planned.append(
            PlannedPart(is_compiled=False, file=f"{number}.onnx", inputs=inputs, outputs=made)
        )
    return PartsProgram(directory, PartsPlan(parts=tuple(planned), outputs=tuple(outputs)), 1)


def node(kind: str, read: str, made: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, [read], [made], **attributes)


FEED = {"x": np.array([[1, -2, 0], [-3, 4, 5]], np.float32)}


def test_each_part_reads_what_those_before_it_made(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Neg", "a", "b"),
        node("Relu", "x", "c"),
        helper.make_node("Sub", ["b", "c"], ["d"]),
        node("Relu", "d", "e"),
    ]
    negative, nothing = program(nodes, ["d", "e"], tmp_path).run(FEED)
    np.testing.assert_array_equal(negative, -2 * np.maximum(FEED["x"], 0))
    assert not nothing.any()


@pytest.mark.parametrize("count", [1, 3])
def test_a_shape_may_depend_on_data(tmp_path: Path, count: int) -> None:
    nodes = [node("Relu", "x", "a"), node("NonZero", "a", "n"), node("Neg", "a", "b")]
    found = program(nodes, ["n", "b"], tmp_path)
    feed = {"x": np.array([[1] * count + [0] * (3 - count), [0] * 3], np.float32)}
    for _ in range(2):
        places, negative = found.run(feed)
        assert places.shape == (2, count)
        np.testing.assert_array_equal(negative, -feed["x"])


def test_texts_go_from_part_to_part(tmp_path: Path) -> None:
    nodes = [
        node("Relu", "x", "a"),
        node("Cast", "a", "text", to=TensorProto.STRING),
        node("Cast", "text", "back", to=TensorProto.FLOAT),
        node("Relu", "back", "y"),
    ]
    text, output = program(nodes, ["text", "y"], tmp_path).run(FEED)
    assert text[1, 2] == "5"
    np.testing.assert_array_equal(output, np.maximum(FEED["x"], 0))


def test_outputs_of_a_run_stay_when_another_follows(tmp_path: Path) -> None:
    found = program([node("Relu", "x", "y")], ["y"], tmp_path)
    (first,) = found.run(FEED)
    inference = found.bound({"x": -FEED["x"]})
    (again,) = inference()
    assert first[0, 0] == 1
    assert again[0, 0] == 0


def test_what_went_into_each_part_is_told(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a"), node("Neg", "a", "y")]
    first, second = program(nodes, ["y"], tmp_path).feeds(FEED)
    np.testing.assert_array_equal(first[1]["x"], FEED["x"])
    np.testing.assert_array_equal(second[1]["a"], np.maximum(FEED["x"], 0))
