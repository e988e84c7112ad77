"""Layers that differ are found, whatever they are called."""

import random
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import parser

from tunegate.models.light_models import seeded_light
from tunegate.runtimes.changed_layers import (
    Differing,
    Layer,
    Layers,
    differing_layers,
    layers_in,
    layers_of,
)
from tunegate.system.output.artifact_file import ArtifactFile

SIZES = {"data_0": (1, 3, 224, 224)}
MODEL = seeded_light("squeezenet", seed=1)
LAYERS = layers_in(MODEL, SIZES)


NONE = frozenset[str]()


def differing(base: Layers, head: Layers) -> Differing:
    """The layers that differ where none is fused with another one."""
    return differing_layers(base, head, set(base), set(head))


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


LOOP = """agraph (float[4] x) => (float[4] y) <int64 n = {2}> {
    count = Add (n, n)
    y = Loop <body = b (int64 i, bool go, float[4] v) => (bool on, float[4] w) {
        on = Identity (go)
        w = Tanh (v)
    }> (count, , x)
}"""
STALE = """agraph (float[4,8] x) => (float[4,8] y) <float[2] s = {1, 1}, float[4,8] r> {
    r = Resize (x, , s)
    y = Tanh (r)
}"""
ROWS = """agraph (float[512] x) => (float[N] y) <float few = {0.1}> {
    scaled = Mul (x, few)
    whole = Round (scaled)
    at = NonZero (whole)
    y = Gather (x, at)
    z = Tanh (y)
}"""
CALLS = """agraph (float[4] x) => (float[4] y) { y = own.Two (x) }
<opset_import: ["" : 17], domain: "own">
Two (i) => (o) { o = Tanh (i) }"""
OLDER = CALLS.replace("17", "13")
SOFTMAX = '<ir_version: 9, opset_import: ["" : 13]> ' + (
    "agraph (float[2,4,8] x) => (float[2,4,8] y) { y = Softmax <axis = 1> (x) }"
)
TWICE = """agraph (float[4] x, bool c) => (float[4] y) {
    h = If (c) <
        then_branch = t () => (float[4] a) { [same] a = Tanh (x) },
        else_branch = e () => (float[4] b) { [same] b = Tanh (x) }>
    y = Tanh (h)
}"""


@pytest.mark.parametrize(
    ("base", "was", "now", "differs"),
    [
        pytest.param(LOOP, "{2}", "{5}", {"count", "y", "w", "on"}, id="a count of a loop"),
        pytest.param(LOOP, "agraph", "renamed", set(), id="nothing"),
        pytest.param(STALE, "{1", "{2", {"r", "y"}, id="sizes of before an edit"),
        pytest.param(ROWS, "0.1", "10", {"scaled", "y", "z"}, id="numbers that decide a size"),
        pytest.param(CALLS, "Tanh", "Sin", {"y"}, id="a function"),
        pytest.param(OLDER, "Tanh", "Sin", {"y"}, id="a function of another version"),
        pytest.param(SOFTMAX, "13", "12", {"y"}, id="a meaning of before version 13"),
        pytest.param(TWICE, "y =", "[same] y =", {"same"}, id="one name for several layers"),
    ],
)
def test_what_decides_the_work_of_a_layer_is_a_part_of_it(
    base: str, was: str, now: str, differs: set[str]
) -> None:
    """A file may state the sizes that values had before it was edited."""
    before, after = (parsed(text) for text in (base, base.replace(was, now)))
    assert differing(before, after).head == differs


def test_small_numbers_in_a_data_file_count(tmp_path: Path) -> None:
    artifact = ArtifactFile(runtime="onnxruntime", file="m.onnx", inputs=(), outputs=(), threads=1)
    onnx.save(model(LOOP), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    assert layers_of(tmp_path, artifact) == parsed(LOOP)


def model(graph: str) -> onnx.ModelProto:
    imports = '<ir_version: 9, opset_import: ["" : 17, "own" : 1]>'
    return parser.parse_model(graph if graph.startswith("<") else f"{imports} {graph}")


def parsed(graph: str) -> Layers:
    return layers_in(model(graph), {})
