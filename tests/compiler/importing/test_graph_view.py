"""What rules know of a graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.operator_models import operator_model
from tests.support.small_onnx import conv_model, matmul_model, one_node_model, save
from tunegate.compiler import opening as module
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.importing.graph_view import GraphView, attribute
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel


def test_types_are_known_where_all_extents_are() -> None:
    view = GraphView(matmul_model(rows=3))
    assert view.type_of("y") == ((3, 16), TensorProto.FLOAT)
    assert view.type_of("w") == ((16, 16), TensorProto.FLOAT)
    assert view.type_of("nowhere") is None
    assert GraphView(matmul_model(rows="n")).type_of("y") is None


def test_constants_are_initializers_and_constant_nodes() -> None:
    model = operator_model(helper.make_node("Constant", [], ["y"], value_ints=[1, 2]), {})
    constant = GraphView(model).constant("y")
    assert constant is not None
    assert constant.tolist() == [1, 2]
    assert GraphView(matmul_model()).constant("x") is None


def test_attributes_have_defaults_and_text_is_text() -> None:
    node = helper.make_node("LSTM", ["x"], ["y"], direction="reverse", activations=["Tanh"])
    assert attribute(node, "direction") == "reverse"
    assert attribute(node, "activations") == ["Tanh"]
    assert attribute(node, "clip", np.inf) == np.inf


# A model is imported in the first layout in which it can be built.

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedModel:
    file = save(conv_model(), tmp_path / "m.onnx")
    return prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")


def test_the_second_layout_is_taken_where_the_first_cannot_be_built(
    prepared: PreparedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = import_in_layout(prepared, TARGET, "m", ("nchw",))
    monkeypatch.setattr(module, "unbuildable", _only_first_refused())
    found = import_in_layout(prepared, TARGET, "m", ("nhwc", "nchw"))
    digests = [[f.workload.digest for f in functions_of(each)] for each in (only, found)]
    assert digests[0] == digests[1]


def test_what_the_first_layout_lacks_is_said_where_none_can_be_built(tmp_path: Path) -> None:
    file = save(one_node_model("Det"), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    with pytest.raises(UnsupportedModelError, match="Det"):
        import_in_layout(prepared, TARGET, "m", ("nhwc", "nchw"))


def _only_first_refused() -> Callable[..., str]:
    answers = iter(["the compiler has no code for it", ""])
    return lambda *_: next(answers)
