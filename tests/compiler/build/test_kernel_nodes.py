"""A kernel is called like the nodes that it computes, whatever the compiler calls it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.compiler.importing.fused_module import fused_module
from tests.support.small_onnx import conv_model, model_of, save
from tunegate.compiler.build import functions
from tunegate.compiler.opening import KnownSchedules
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A product, then operators without weights, one of them without a name."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "encoder/proj"),
        helper.make_node("Softmax", ["a"], ["b"], "encoder/attention", axis=-1),
        helper.make_node("Exp", ["b"], ["c"], "encoder/exp"),
        helper.make_node("Sqrt", ["c"], ["d"], "encoder/root"),
        helper.make_node("ReduceMax", ["d"], ["y"], axes=[1]),
    ]
    model = model_of(nodes, {"x": [4, 16]}, {"y": [4, 1]}, {"w": np.ones((16, 16), "f")})
    folder: Path = tmp_path_factory.mktemp("named")
    return fused_module(model, folder, TARGET, channels_last=True)


def test_a_kernel_without_weights_is_called_like_its_first_and_last_node(module: Any) -> None:
    labels = [each.label for each in functions.functions_of(module)]
    assert labels == ["encoder/proj", "encoder/attention to root", "ReduceMax y"]


def test_a_change_of_layout_keeps_its_operator(tmp_path: Path) -> None:
    found = fused_module(conv_model(), tmp_path, TARGET, channels_last=True)
    labels = [each.label for each in functions.functions_of(found)]
    assert labels == ["transpose", "conv", "transpose (conv_relu)"]


def test_all_nodes_of_a_fused_kernel_are_known_in_their_order(module: Any) -> None:
    assert ["encoder/attention", "encoder/exp", "encoder/root"] in functions.kernel_nodes(
        module
    ).values()


def test_names_are_no_part_of_what_a_kernel_computes(module: Any) -> None:
    plain = functions.with_kernel_nodes(module, [])
    assert functions.kernel_nodes(plain) == {}
    found, known = functions.functions_of(plain), functions.functions_of(module)
    assert [each.workload.digest for each in found] == [each.workload.digest for each in known]
    assert [each.label for each in found] == [each.operator for each in found]


def names_of(model: onnx.ModelProto, tmp_path: Path) -> list[str]:
    return list(functions.layer_names(save(model, tmp_path / "m.onnx")).values())


def rename(model: onnx.ModelProto, *names: str) -> onnx.ModelProto:
    for node, name in zip(model.graph.node, names, strict=False):
        node.name = name
    return model


def test_a_weight_names_the_first_layer_that_uses_it(tmp_path: Path) -> None:
    assert set(names_of(rename(conv_model(), "stem"), tmp_path)) == {"stem"}


def test_a_layer_without_a_name_is_called_like_what_it_gives(tmp_path: Path) -> None:
    model = rename(conv_model(), "")
    assert set(names_of(model, tmp_path)) == {model.graph.node[0].output[0]}


def test_two_layers_with_one_weight_are_named_by_the_first(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="first"),
        helper.make_node("MatMul", ["y", "w"], ["z"], name="second"),
    ]
    model = model_of(nodes, {"x": [4, 4]}, {"z": [4, 4]}, {"w": np.ones((4, 4), "float32")})
    assert names_of(model, tmp_path) == ["first"]


# What was found out of a kernel's schedules holds for what was given then, and for the same
# schedule alone.

NAMES, SCHEDULES = "ab", "st"


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 1)), max_size=8))
def test_what_is_given_again_is_not_chosen_again(asked: list[tuple[str, int]]) -> None:
    known, last = KnownSchedules[object](), dict[str, tuple[int, object]]()
    for name, records in asked:
        choice = known.choose_once(name, records, object)
        if name in last and last[name][0] == records:
            assert choice is last[name][1]
        else:
            assert all(choice is not other for _, other in last.values())
        last[name] = records, choice


@given(
    st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(SCHEDULES)), st.booleans())
)
def test_a_schedule_that_was_tried_keeps_its_verdict_and_no_other_has_it(
    tried: dict[tuple[str, str], bool],
) -> None:
    known = KnownSchedules[object]()
    for (name, schedule), slower in tried.items():
        known.remember_speed(name, schedule, slower=slower)
    for name in NAMES:
        for schedule in SCHEDULES:
            assert known.is_slower(name, schedule) == tried.get((name, schedule))
    known.forgive(NAMES[:1])
    for (name, schedule), slower in tried.items():
        assert known.is_slower(name, schedule) == (slower and name not in NAMES[:1])
