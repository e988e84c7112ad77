"""What TVM would build wrong is refused by name."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import one_node_model
from tunegate.compiler.importing.rewriting import importable
from tunegate.errors import UnsupportedModelError


def test_an_operator_is_named() -> None:
    with pytest.raises(UnsupportedModelError, match="MaxUnpool"):
        importable(one_node_model("MaxUnpool"))


def test_an_output_that_is_no_tensor_is_named() -> None:
    model: onnx.ModelProto = one_node_model("SequenceConstruct")
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [4, 4])
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))
    with pytest.raises(UnsupportedModelError, match="output y"):
        importable(model)
