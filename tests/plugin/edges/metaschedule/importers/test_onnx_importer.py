"""The importer names what neither TVM nor we know."""

from __future__ import annotations

import pytest
import tvm

from tests.support.small_onnx import matmul_model, one_node_model
from tunegate.edges.metaschedule.importers.onnx_importer import imported


def test_a_model_becomes_a_module_with_a_main_function() -> None:
    module = imported(matmul_model())
    assert "main" in {variable.name_hint for variable in module.get_global_vars()}


def test_an_operator_that_nobody_knows_is_named() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="Det"):
        imported(one_node_model("Det"))
