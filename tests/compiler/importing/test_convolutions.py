"""Transposed convolutions to extents that the node says, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.support.operator_models import operator_model, rewritten
from tunegate.compiler.importing.graph_view import attribute
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError

RANDOM = np.random.default_rng(0)
FEED = {"x": RANDOM.standard_normal((1, 2, 3, 4)).astype(np.float32)}
WEIGHTS = {"w": RANDOM.standard_normal((2, 3, 3, 3)).astype(np.float32)}


def model(**options: Any) -> Any:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[3, 2], **options)
    return operator_model(node, FEED, WEIGHTS)


@pytest.mark.parametrize("shape", [[10, 9], [9, 8], [6, 5], [11, 10]])
@pytest.mark.parametrize("way", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_pads_give_the_same_numbers(shape: list[int], way: str) -> None:
    before = model(output_shape=shape, auto_pad=way)
    rewritten(before, FEED)
    assert attribute(importable(before).graph.node[0], "output_shape") is None


def test_extents_that_no_pads_give_are_refused() -> None:
    beyond = model(output_shape=[9, 9])
    (shape,) = [each for each in beyond.graph.node[0].attribute if each.name == "output_shape"]
    shape.ints[:] = [20, 20]
    with pytest.raises(UnsupportedModelError, match="ConvTranspose"):
        importable(beyond)
