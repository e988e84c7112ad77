"""Operators that are not on the device are found, and told."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest

from tests.support.small_onnx import chain_model, save
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.onnxruntime_cuda.model import PlacedNode, placed_nodes, told_of_placement

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def test_a_model_that_is_whole_on_the_device_has_nothing_to_tell() -> None:
    assert told_of_placement([PlacedNode(CUDA, "Conv"), PlacedNode(CUDA, "Relu")], CUDA) == ""


def test_operators_elsewhere_are_counted_and_named() -> None:
    away = ("Resize", "NonZero", "Resize")
    nodes = [PlacedNode(CUDA, "Conv"), *(PlacedNode(CPU, each) for each in away)]
    assert told_of_placement(nodes, CUDA) == "3 of 4 nodes run on the CPU: Resize (2), NonZero"
    assert told_of_placement(nodes[:2], CUDA) == "1 of 2 nodes runs on the CPU: Resize"


def test_of_many_operators_five_are_named() -> None:
    nodes = [PlacedNode(CUDA, "Conv"), *(PlacedNode(CPU, each) for each in "ABCDEFG")]
    assert told_of_placement(nodes, CUDA).endswith(": A, B, C, D, E, ...")


def test_a_model_with_nothing_on_the_device_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="none of its operators on the device"):
        told_of_placement([PlacedNode(CPU, "Conv")], CUDA)


def test_a_session_tells_which_provider_runs_each_node(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    file = str(save(chain_model(layers=2, width=8), tmp_path / "m.onnx"))
    session = onnxruntime.InferenceSession(file, options, providers=[CPU])
    found = placed_nodes(session)
    assert found
    assert {each.provider for each in found} == {CPU}
