from __future__ import annotations

from pathlib import Path

from tests.support.small_onnx import conv_model, save
from tunegate.runtimes.openvino.model import LAYERS, ExecutedLayer, names_in, names_of_layers

KNOWN = {"conv1", "relu1", "pool"}


class OwnFile:
    """What OpenVINO reads of a file of its own."""

    def __init__(self, told: str) -> None:
        self.astype = {str: told}.__getitem__

    def get_rt_info(self, path: list[str]) -> OwnFile:
        assert path == [LAYERS]
        return self


def test_the_names_of_an_onnx_file_are_those_of_its_nodes_and_what_they_give(
    tmp_path: Path,
) -> None:
    file = save(conv_model(name="stem"), tmp_path / "m.onnx")
    assert names_in(file, None) == {"stem", "c", "stem_relu", "y"}


def test_a_file_of_openvinos_own_says_them() -> None:
    assert names_in(Path("m.xml"), lambda file: OwnFile('["stem", "y"]')) == {"stem", "y"}


def test_a_layer_is_called_like_the_first_node_of_the_model_in_it() -> None:
    layers = {
        "Multiply_97": ExecutedLayer(("Constant_3", "conv1", "relu1")),
        "Odd_1": ExecutedLayer(("other",)),
        "pool": ExecutedLayer(("pool",)),
    }
    named = names_of_layers(layers, KNOWN)
    assert named == {"Multiply_97": "conv1", "Odd_1": "Odd_1", "pool": "pool"}


def test_a_change_of_layout_is_part_of_the_layer_before_it_else_of_that_behind_it() -> None:
    layers = {
        "x": ExecutedLayer(),
        "x_abcd_acdb_conv1": ExecutedLayer(before="x", after="convert"),
        "convert": ExecutedLayer(before="x_abcd_acdb_conv1", after="conv1"),
        "conv1": ExecutedLayer(("conv1",), before="convert", after="conv1_acdb_abcd_pool"),
        "conv1_acdb_abcd_pool": ExecutedLayer(before="conv1", after="pool"),
        "pool": ExecutedLayer(("pool",), before="conv1_acdb_abcd_pool"),
    }
    named = names_of_layers(layers, KNOWN)
    assert named["x_abcd_acdb_conv1"] == named["convert"] == "conv1"
    assert named["conv1_acdb_abcd_pool"] == "conv1"


def test_layers_that_go_in_a_circle_keep_their_names() -> None:
    layers = {"a": ExecutedLayer(before="b", after="b"), "b": ExecutedLayer(before="a", after="a")}
    assert names_of_layers(layers, KNOWN) == {"a": "a", "b": "b"}
