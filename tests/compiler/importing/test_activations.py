"""Activations with the arguments of the node, or their defaults."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

from tunegate.compiler.importing.graph_view import Replacement, attribute
from tunegate.compiler.importing.recurrent import activations_of, clipped


def written(**options: Any) -> list[Any] | None:
    """The node that the first activation of an RNN becomes, behind its clip."""
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], **options)
    found = activations_of(node, ("Tanh",), 1)
    if found is None:
        return None
    new = Replacement(node)
    clipped(node, found[0])(new, "x")
    return [made for made in new.nodes if made.op_type != "Constant"]


def test_the_default_is_that_of_the_operator() -> None:
    nodes = written()
    assert nodes is not None
    assert [node.op_type for node in nodes] == ["Tanh"]


def test_arguments_are_taken_from_the_node_and_the_rest_has_defaults() -> None:
    nodes = written(activations=["hardsigmoid"], activation_alpha=[0.5])
    assert nodes is not None
    assert attribute(nodes[0], "alpha") == pytest.approx(0.5)
    assert attribute(nodes[0], "beta") == pytest.approx(0.5)


def test_a_clip_comes_first() -> None:
    nodes = written(clip=2.0)
    assert nodes is not None
    assert [node.op_type for node in nodes] == ["Clip", "Tanh"]


@pytest.mark.parametrize("names", [["Odd"], ["Tanh", "Tanh"]])
def test_one_that_is_not_known_is_nobodys(names: list[str]) -> None:
    assert written(activations=names) is None
