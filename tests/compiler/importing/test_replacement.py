"""Nodes that stand for another one."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tunegate.compiler.importing.graph_view import Replacement

NODE = helper.make_node("Odd", ["x"], ["y"], name="here")


def test_names_begin_with_those_of_the_node_and_are_each_used_once() -> None:
    new = Replacement(NODE)
    new.add("Add", [new.constant(1, np.float32), new.cast("x", 1)], to="y")
    outputs = [name for node in new.nodes for name in node.output]
    assert len(set(outputs)) == len(outputs)
    assert all(name.startswith("y") for name in outputs)
    assert all(node.name.startswith("here/") for node in new.nodes)
    assert outputs[-1] == "y"


def test_a_node_without_a_name_lends_its_output() -> None:
    new = Replacement(helper.make_node("Odd", ["x"], ["", "z"]))
    assert new.sliced("x", 0, 1, 2).startswith("z/")
