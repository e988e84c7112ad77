from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.facts import Fact, facts_of

I = GraphInput("i", (3, 2), "int64")
X = GraphInput("x", (5, 7), "float32")


def _facts(made: Any, tensor: GraphInput = I, weights: dict[str, Any] | None = None) -> list[Fact]:
    model = graph_of([made], [tensor, X], weights=weights or {})
    return list(facts_of(tensor, Dataflow(model, [tensor, X])))


@pytest.mark.parametrize(
    ("made", "high"),
    [
        (node("Gather", "x i", "y", axis=1), 6),
        (node("GatherElements", "x i", "y", axis=0), 4),
        (node("GatherND", "x i", "y"), 4),
        (node("ScatterElements", "x i u", "y", axis=-1), 6),
        (node("ScatterND", "x i v", "y"), 4),
    ],
)
def test_indices_are_within_the_axis_that_they_are_of(made: Any, high: int) -> None:
    weights = {"u": np.ones((3, 2), np.float32), "v": np.ones(3, np.float32)}
    (fact,) = _facts(made, weights=weights)
    assert (fact.low, fact.high, fact.is_must) == (0, high, True)


def test_classes_are_fewer_than_the_depth_of_their_coding() -> None:
    weights = {"depth": np.array([9]), "values": np.array([0.0, 1.0])}
    (fact,) = _facts(node("OneHot", "i depth values", "y"), weights=weights)
    assert (fact.low, fact.high, fact.is_must) == (0, 8, False)


def test_one_value_among_many_says_nothing() -> None:
    assert _facts(node("Equal", "i padding", "y"), weights={"padding": np.int64(0)}) == []


def test_a_single_number_is_the_one_that_it_is_compared_with() -> None:
    rate = GraphInput("i", (1,), "int64")
    (fact,) = _facts(node("Equal", "i rate", "y"), rate, {"rate": np.int64(8000)})
    assert fact.values == (8000,)


def test_lengths_compared_with_all_places_are_whole() -> None:
    (fact,) = _facts(node("Less", "places i", "y"), weights={"places": np.arange(2)})
    assert fact.values == (2,)


def test_a_number_of_places_fits_their_axis() -> None:
    count = GraphInput("i", (1,), "int64")
    (fact,) = _facts(node("TopK", "x i", "y z"), count)
    assert (fact.low, fact.high) == (1, 7)


def test_where_a_slice_ends_is_the_end_of_the_axis() -> None:
    end = GraphInput("i", (1,), "int64")
    weights = {"from": np.array([0]), "axes": np.array([1])}
    (fact,) = _facts(node("Slice", "x from i axes", "y"), end, weights)
    assert fact.values == (7,)
