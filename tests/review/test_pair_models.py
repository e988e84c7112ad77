from collections.abc import Collection, Mapping

import numpy as np
import onnx
import pytest
from msgspec.structs import replace
from onnx import TensorProto, helper, numpy_helper

from tests.support.measured_cells import make_version
from tests.support.small_onnx import model_of
from tunegate.artifacts.changes import ModelOutline, ModelPath, ModelVersion
from tunegate.models.graph import outline_of
from tunegate.review.detect import changed_layers
from tunegate.review.pair_models import Pairs, likeness, pair_models

OLD = "models/m.onnx"


class Tree:
    """Models by what they are made of: `conv*3 relu` has three convolutions."""

    def __init__(self, obstacles: Mapping[ModelPath, str] | None = None) -> None:
        self.obstacles = obstacles or {}

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        return {}

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        return None

    def with_digest(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        return version, ""

    def with_data_files(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        return version, ""

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        made_of = version.content_digest.partition("/")[0]
        return None if made_of == "broken" else outline(made_of)

    def blob(self, revision: str, path: str) -> str:
        raise NotImplementedError

    def submodules(self, revision: str) -> Mapping[str, str]:
        raise NotImplementedError

    def unread_outputs(self, base: str | None, head: str) -> Mapping[str, str]:
        raise NotImplementedError

    def unlisted_version(self, revision: str, path: ModelPath) -> ModelVersion | None:
        return None

    def obstacle(self, revision: str, path: ModelPath) -> str:
        return self.obstacles.get(path, "")


def outline(made_of: str) -> ModelOutline:
    counted = (part.partition("*") for part in made_of.split())
    parts = {name: int(number or 1) for name, _, number in counted}
    return ModelOutline(graph_digest=made_of, inputs=(), parts=parts)


def pairs(
    base: dict[str, str],
    head: dict[str, str],
    tree: Tree | None = None,
    covered: Collection[str] = (),
) -> Pairs:
    """The values say what a model is made of; what follows a slash are its weights. All models of
    the base are covered where it is not said which."""
    before, after = (
        {path: replace(make_version(made), path=path) for path, made in side.items()}
        for side in (base, head)
    )
    return pair_models(tree or Tree(), before, after, covered or list(base), "head")


def test_the_same_path_is_the_same_model() -> None:
    found = pairs({OLD: "conv"}, {OLD: "relu", "new.onnx": "conv"})
    assert [version.path for version in found.before.values()] == [OLD]
    assert (found.moved, found.lost) == ({}, ())


def test_the_same_bytes_elsewhere_are_the_model_and_no_other_is_looked_at() -> None:
    found = pairs({OLD: "conv"}, {"a.onnx": "conv*9", "b.onnx": "conv"}, Tree({"": "x"}))
    assert (list(found.before), found.moved, found.lost) == (["b.onnx"], {}, ())


@pytest.mark.parametrize(
    ("new", "model"),
    [
        ({"m.onnx": "conv*3 relu", "other.onnx": "conv*3/2"}, "other.onnx"),
        ({"attic/M.ONNX": "relu", "other.onnx": "conv*3 relu"}, "attic/M.ONNX"),
        ({"a.onnx": "conv*2", "b.onnx": "conv*3 relu", "c.onnx": "gru"}, "b.onnx"),
    ],
)
def test_of_several_new_files_the_graph_counts_most_then_the_name_then_the_parts(
    new: dict[str, str], model: str
) -> None:
    assert pairs({OLD: "conv*3/1"}, new).moved == {model: OLD}


def test_the_only_two_are_compared_however_different() -> None:
    assert pairs({OLD: "conv"}, {"z.onnx": "gru"}).moved == {"z.onnx": OLD}
    assert pairs({OLD: "conv"}, {"z.onnx": "broken"}).moved == {"z.onnx": OLD}
    rest = {"z.onnx": "gru", "m.onnx": "conv*2"}
    assert pairs({OLD: "conv", "y.onnx": "lstm"}, rest).moved == {"m.onnx": OLD, "z.onnx": "y.onnx"}


def test_one_that_nothing_resembles_is_lost() -> None:
    found = pairs({OLD: "conv"}, {"y.onnx": "gru", "z.onnx": "lstm"})
    assert (found.moved, found.lost) == ({}, (OLD,))


def test_what_is_blocked_is_neither_lost_nor_looked_for() -> None:
    found = pairs({OLD: "conv"}, {"z.onnx": "conv"}, Tree({OLD: "models is a submodule"}))
    assert found.blocked == {OLD: "models is a submodule"}
    assert (found.before, found.lost) == ({}, ())


def test_likeness_is_the_share_of_equal_parts() -> None:
    assert likeness("a", outline("conv*3 relu"), "b", outline("conv*1 relu")) == 0.5
    assert likeness("a", None, "b", outline("conv")) == 0
    assert likeness("x/a.onnx", None, "y/A.ONNX", None) == 1


def test_of_very_many_only_those_with_the_same_name_are_found_and_none_is_opened() -> None:
    """A change that moves thousands of files must not take hours."""
    number = 3000
    base = {f"old/{at}.onnx": f"conv*{at + 1}/old" for at in range(number)}
    head = {f"new/{at}.ONNX": f"conv*{at + 1}/new" for at in range(number - 1)}
    found = pairs(base, head, Unopened())
    assert found.moved == {f"new/{at}.ONNX": f"old/{at}.onnx" for at in range(number - 1)}
    assert found.lost == (f"old/{number - 1}.onnx",)


class Unopened(Tree):
    def outline(self, version: ModelVersion) -> ModelOutline | None:
        raise AssertionError


def test_a_model_that_takes_the_place_of_a_file_that_nobody_gated_is_found_there() -> None:
    base = {OLD: "conv*3", "attic/old.onnx": "gru", "attic/same.onnx": "conv*3/same"}
    head = {"attic/old.onnx": "conv*4", "attic/same.onnx": "conv*3/same"}
    found = pairs(base, head, covered=[OLD])
    assert found.moved == {"attic/old.onnx": OLD}
    assert [version.path for version in found.before.values()] == [OLD, "attic/same.onnx"]
    assert pairs(base, head | {"attic/old.onnx": "lstm"}, covered=[OLD]).lost == (OLD,)
    assert pairs(base, head, covered=[OLD, "attic/old.onnx"]).lost == (OLD,)


Facts = dict[str, dict[str, str]]


def convolution(kernel: int, activation: str = "Relu", name: str = "mix") -> Facts:
    """The layers of a convolution with that kernel, and what follows it."""
    weights = np.zeros((16, 3, kernel, kernel), np.float32)
    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name, kernel_shape=[kernel] * 2, pads=pads),
        helper.make_node(activation, ["c"], ["y"]),
    ]
    return outline_of(
        model_of(
            nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 16, 8, 8]}, {"w": weights}
        ).SerializeToString()
    ).layers


def told(before: Facts, after: Facts) -> list[tuple[str, str]]:
    return [(each.name, each.change) for each in changed_layers(before, after)]


def test_a_kernel_that_became_larger_is_told_with_shapes_and_attributes() -> None:
    assert told(convolution(1), convolution(5)) == [
        ("mix", "Conv: weights 16x3x1x1 → 16x3x5x5, kernel_shape 1,1 → 5,5, pads 0,0,0,0 → 2,2,2,2")
    ]


def test_an_operator_in_place_of_another_is_told_by_the_name_of_its_output() -> None:
    assert told(convolution(1), convolution(1, "Erf")) == [("y", "Relu → Erf")]


def test_new_layers_and_those_that_are_gone_have_what_they_are() -> None:
    new, gone = told(convolution(1, name="old"), convolution(1, name="new"))
    facts = "Conv (weights 16x3x1x1, kernel_shape 1,1, pads 0,0,0,0)"
    assert (new, gone) == (("new", f"new: {facts}"), ("old", f"gone: {facts}"))


def hidden(kernel: int, place: str) -> Facts:
    """The layers of a convolution inside of a loop's body, of a function, or behind its twin."""
    weights = numpy_helper.from_array(np.zeros((16, 3, kernel, kernel), np.float32), "w")
    inner = helper.make_node("Conv", ["x", "w"], ["c"], "mix", kernel_shape=[kernel] * 2)
    body = helper.make_graph([inner], "b", [], [], [weights])
    graph = onnx.GraphProto(name="g", initializer=[weights])
    model = onnx.ModelProto(ir_version=10, graph=graph)
    if place == "loop":
        model.graph.node.append(helper.make_node("Loop", ["n"], ["y"], "steps", body=body))
    elif place == "twin":
        model.graph.node.extend([inner, helper.make_node("Conv", ["x", "v"], ["d"], "mix")])
    elif place == "constant":
        made = helper.make_node("Constant", [], ["w"], value=weights)
        model.graph.node.extend([made, inner])
    else:
        made = helper.make_node("Constant", [], ["w"], value=weights)
        model.graph.node.append(helper.make_node("F", ["x"], ["y"], "called", domain="own"))
        model.functions.add(name="F", domain="own", node=[made, inner])
    return outline_of(model.SerializeToString()).layers


@pytest.mark.parametrize(
    ("place", "name"),
    [("loop", "steps: mix"), ("function", "function F: mix"), ("twin", "mix"), ("constant", "mix")],
)
def test_a_layer_is_told_wherever_it_is_hidden(place: str, name: str) -> None:
    found = dict(told(hidden(1, place), hidden(5, place)))
    assert found[name] == "Conv: weights 16x3x1x1 → 16x3x5x5, kernel_shape 1,1 → 5,5"


def test_a_new_layer_that_renames_those_behind_it_is_the_only_one_told() -> None:
    def numbered(*operators: str) -> Facts:
        return {f"{name}_{at}": {"operator": name} for at, name in enumerate(operators)}

    before = numbered("Conv", "Relu", "Conv", "Add", "Gemm")
    after = numbered("Conv", "Pad", "Relu", "Conv", "Gemm")
    assert told(before, after) == [("Pad_1", "new: Pad"), ("Add_3", "gone: Add")]


def test_what_differs_behind_the_end_of_a_long_list_is_told() -> None:
    def layers(last: int, repeats: int) -> Facts:
        many = helper.make_node("Pad", ["x", "r"], ["y"], pads=[0] * 500 + [last])
        counts = numpy_helper.from_array(np.array([1, repeats]), "r")
        graph = onnx.GraphProto(name="g", node=[many], initializer=[counts])
        return outline_of(helper.make_model(graph).SerializeToString()).layers

    ((_, change),) = told(layers(0, 1), layers(7, 9))
    assert change.startswith("Pad: weights [1,1] → [1,9], pads 0,0,0")
    assert change.count("(sha256 ") == 2


def test_the_same_graph_says_nothing_and_long_names_are_cut() -> None:
    assert told(convolution(1), convolution(1)) == []
    (first, *_) = told({}, {"n" * 5000: {"operator": "Conv", "a": "b" * 5000}})
    assert (len(first[0]), len(first[1])) == (120, 300)


def test_a_model_of_too_many_nodes_is_not_compared_layer_by_layer() -> None:
    graph = onnx.GraphProto(name="g")
    graph.node.extend([helper.make_node("Relu", ["x"], ["y"])] * 20_001)
    graph.output.extend([helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    assert outline_of(helper.make_model(graph).SerializeToString()).layers == {}
