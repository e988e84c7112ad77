"""Which layers differ, whatever they are called."""

import random

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tunegate.models.light_models import seeded_light
from tunegate.runtimes.changed_layers import Differing, Layer, Layers, differing_layers, layers_in

SIZES = {"data_0": (1, 3, 224, 224)}
MODEL = seeded_light("squeezenet", seed=1)
LAYERS = layers_in(MODEL, SIZES)


NONE = frozenset[str]()


def differing(base: Layers, head: Layers) -> Differing:
    """The layers that differ where none is fused with another one."""
    return differing_layers(base, head, set(base), set(head))


def changed(name: str, **attributes: object) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    (node,) = (each for each in model.graph.node if each.name == name)
    kept = [each for each in node.attribute if each.name not in attributes]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(*each) for each in attributes.items())
    return model


@given(st.integers(0, 2**32))
def test_new_names_change_no_layer(seed: int) -> None:
    shuffled = random.Random(seed).sample(range(len(LAYERS)), len(LAYERS))
    renamed = {f"n{at}": kind for at, kind in zip(shuffled, LAYERS.values(), strict=True)}
    assert differing(LAYERS, renamed) == Differing(NONE, NONE)


def test_new_weights_change_no_layer() -> None:
    assert layers_in(seeded_light("squeezenet", seed=2), SIZES) == LAYERS


@given(st.sampled_from(sorted(LAYERS)), st.integers(1, 5))
def test_more_layers_of_one_kind_are_that_many(name: str, more: int) -> None:
    new = {f"new{at}": LAYERS[name] for at in range(more)}
    assert differing(LAYERS, {**LAYERS, **new}) == Differing(NONE, frozenset(new))
    assert differing({**LAYERS, **new}, LAYERS) == Differing(frozenset(new), NONE)


def test_a_layer_on_more_numbers_differs_and_so_do_those_after_it() -> None:
    after = layers_in(changed("conv1", strides=[1, 1]), SIZES)
    found = differing(LAYERS, after)
    assert {"conv1", "fire2/squeeze1x1", "conv10"} <= found.head


def test_a_layer_that_was_fused_on_one_side_alone_differs_and_so_does_an_unknown_one() -> None:
    base = {
        "conv": Layer("a"),
        "relu": Layer("b", ("conv",)),
        "pool": Layer("c", ("relu",)),
        "last": Layer("d", ("pool",)),
    }
    ran = {"conv", "pool", "last"}
    found = differing_layers(base, base, ran, {*ran, "relu", "reorder"})
    assert found == Differing(
        frozenset({"conv", "pool"}), frozenset({"conv", "pool", "relu", "reorder"})
    )


def test_a_layer_that_computes_what_is_new_differs_on_both_sides() -> None:
    """A sigmoid takes the place of a ReLU, and either is a part of the convolution's kernel."""
    base = {"conv": Layer("a"), "act": Layer("relu", ("conv",)), "far": Layer("c", ("act",))}
    head = {**base, "act": Layer("sigmoid", ("conv",)), "more": Layer("c", ("far",))}
    found = differing_layers(base, head, {"conv", "far"}, {"conv", "far", "more"})
    assert {"conv"} <= found.base
    assert {"conv", "more"} <= found.head


@pytest.mark.parametrize("count", [2, 5])
def test_the_number_of_a_loop_makes_other_layers_of_all_inside_it(count: int) -> None:
    inside = NONE if count == 2 else {"loop", "inside", "pass"}
    assert differing(loop(2), loop(count)).head == inside


def loop(count: int) -> Layers:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"], "pass"),
            helper.make_node("Tanh", ["v"], ["w"], "inside"),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("go", TensorProto.BOOL, []),
            value("v", TensorProto.FLOAT, [4]),
        ],
        [value("on", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [4])],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], "loop", body=body)],
        "g",
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.array(count), "n")],
    )
    return layers_in(helper.make_model(graph), {"x": (4,)})
