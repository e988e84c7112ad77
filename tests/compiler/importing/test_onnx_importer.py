"""The importer names what neither TVM nor we know."""

from __future__ import annotations

import pytest
import tvm
from onnx import TensorProto, helper

from tests.support.small_onnx import matmul_model, one_node_model
from tunegate.compiler.importing.import_onnx import imported


def test_a_model_becomes_a_module_with_a_main_function() -> None:
    module = imported(matmul_model())
    assert "main" in {variable.name_hint for variable in module.get_global_vars()}


def test_inputs_have_names_that_are_names_in_c_and_each_its_own() -> None:
    names = ("gpu_0/data_0", "gpu_0.data_0")
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in (*names, "y")]
    node = helper.make_node("Add", names, ["y"])
    model = helper.make_model(helper.make_graph([node], "g", values[:2], values[2:]))
    first, second = (str(each.name) for each in imported(model)["main"].params)
    assert first == "gpu_0_data_0"
    assert second.isidentifier()
    assert second != first


def test_an_operator_that_nobody_knows_is_named() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="Det"):
        imported(one_node_model("Det"))
