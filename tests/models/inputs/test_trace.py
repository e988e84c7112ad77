from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.trace import Selected, Trace, meetings_of

X = GraphInput("x", (4, 6), "int64")


def _last(nodes: list[onnx.NodeProto], weights: Mapping[str, Any]) -> Trace:
    """The trace that the last step reads."""
    model = graph_of([*nodes, node("Neg", "end", "y")], [X], weights=weights)
    meetings = list(meetings_of(X, Dataflow(model, [X])))
    return next(each.trace for each in meetings if each.use.step.op == "Neg")


def test_columns_of_columns_are_those_of_the_input() -> None:
    weights = {"a": np.array([1, 3, 5]), "b": np.array([2])}
    nodes = [node("Gather", "x a", "some", axis=1), node("Gather", "some b", "end", axis=1)]
    assert _last(nodes, weights).columns == Selected(1, (5,))


def test_a_slice_selects_columns() -> None:
    weights = {"from": np.array([1]), "to": np.array([3]), "axis": np.array([1])}
    assert _last([node("Slice", "x from to axis", "end")], weights).columns == Selected(1, (1, 2))


def test_after_a_reshape_no_columns_are_told_apart() -> None:
    weights = {"shape": np.array([-1]), "a": np.array([1])}
    nodes = [node("Reshape", "x shape", "flat"), node("Gather", "flat a", "end")]
    assert _last(nodes, weights).columns is None


def test_factors_and_offsets_are_kept() -> None:
    weights = {"two": np.int64(2), "three": np.int64(3)}
    nodes = [node("Mul", "x two", "d"), node("Sub", "d three", "end")]
    trace = _last(nodes, weights)
    assert (trace.scale, trace.offset) == (2.0, -3.0)


def test_a_part_of_a_concatenation_has_its_place() -> None:
    weights = {"first": np.zeros((4, 2), np.int64)}
    trace = _last([node("Concat", "first x", "end", axis=-1)], weights)
    assert trace.component == 2
