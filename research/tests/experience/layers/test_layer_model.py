from __future__ import annotations

import msgspec
import pytest

from research.experience.layers.layer_model import layer_model
from research.tests.experience.layers.test_layer import CONVOLUTION, PRODUCT


def test_what_follows_a_layer_is_in_its_model() -> None:
    graph = layer_model(PRODUCT).graph
    assert [node.op_type for node in graph.node] == ["MatMul", "Add", "Add"]
    assert [value.name for value in graph.input] == ["x0", "r2"]
    shape = graph.output[0].type.tensor_type.shape
    assert [dim.dim_value for dim in shape.dim] == [1, 64, 256]


def test_weights_are_the_same_each_time() -> None:
    assert layer_model(CONVOLUTION) == layer_model(CONVOLUTION)


def test_sizes_that_do_not_fit_together_are_refused() -> None:
    broken = msgspec.structs.replace(PRODUCT, operands=((1, 64, 128), (64, 256)))
    with pytest.raises(Exception, match=r"(?i)incompatible"):
        layer_model(broken)
