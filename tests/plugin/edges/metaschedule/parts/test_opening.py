"""A model is opened whole where the compiler takes it, and in parts where that is wanted."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support.small_onnx import one_node_model, parts_model, save
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.parts.open_parts import SplitModel
from tunegate.edges.metaschedule.parts.opening import OpenedModel, opened_model
from tunegate.engine.protocol import ModelFile
from tunegate.errors import UnsupportedModelError


def opened(model: onnx.ModelProto, place: Path, *, in_parts: bool = True) -> OpenedModel:
    file = ModelFile(file=str(save(model, place / "m.onnx")), path="m.onnx", shapes={})
    return opened_model(file, TargetConfig(name="cpu"), place / "into", in_parts=in_parts)


def test_what_the_compiler_takes_is_opened_whole(tmp_path: Path) -> None:
    assert isinstance(opened(one_node_model("Relu"), tmp_path), OpenModel)


def test_the_kernels_of_parts_are_those_that_they_would_be_in_a_whole_model(
    tmp_path: Path,
) -> None:
    found = opened(parts_model(maps=3), tmp_path)
    assert isinstance(found, SplitModel)
    assert "Binarizer" in found.reason
    whole = parts_model(maps=3)
    nodes = [node for node in whole.graph.node if node.name != "bits"]
    nodes[6].input[0] = "before_2"
    del whole.graph.node[:]
    whole.graph.node.extend(nodes[:6])
    whole.graph.output[0].name = "before_2"
    alone = opened(whole, tmp_path / "alone")
    assert {f.workload.digest for f in alone.functions} == {
        f.workload.digest for f in found.functions
    }


def test_where_parts_are_not_wanted_the_reason_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="operator Binarizer"):
        opened(parts_model(maps=3), tmp_path, in_parts=False)
