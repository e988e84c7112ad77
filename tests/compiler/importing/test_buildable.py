"""A model that the compiler cannot build is known by its module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from tvm import relax

from tests.support.small_onnx import conv_model, save
from tunegate.compiler.importing.import_onnx import fused, import_operators
from tunegate.compiler.opening import unbuildable
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare

TARGET = tvm_target(TargetConfig(name="cpu", threads=1)).target


def test_a_model_of_static_shapes_has_no_obstacle(tmp_path: Path) -> None:
    file = save(conv_model(), tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    module = fused(import_operators(prepared, "m.onnx"), TARGET, channels_last=True)
    assert unbuildable(module, TARGET) == ""


def test_an_output_whose_shape_depends_on_data_is_named(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [2, "found"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = save(model, tmp_path / "m.onnx")
    prepared = prepare(file, shapes={}, into=tmp_path / "p", path="m.onnx")
    module = fused(import_operators(prepared, "m.onnx"), TARGET, channels_last=False)
    assert "data" in unbuildable(module, TARGET)


@pytest.mark.parametrize(("layout", "obstacle"), [("NCHW", ""), ("NHWC", "conv2d_transpose")])
def test_an_operator_without_code_in_its_layout_is_named(layout: str, obstacle: str) -> None:
    found = unbuildable(relax.get_pipeline("zero")(_transposed(layout)), TARGET)
    assert obstacle in found
    assert bool(found) == bool(obstacle)


def _transposed(layout: str) -> Any:
    shape = (1, 4, 8, 8) if layout == "NCHW" else (1, 8, 8, 4)
    builder = relax.BlockBuilder()
    image = relax.Var("x", relax.TensorType(shape, "float32"))
    weight = relax.Var("w", relax.TensorType((4, 2, 2, 2), "float32"))
    with builder.function("main", [image, weight]):
        with builder.dataflow():
            call = relax.op.nn.conv2d_transpose(image, weight, strides=(2, 2), data_layout=layout)
            output = builder.emit_output(call)
        builder.emit_func_output(output)
    return builder.finalize()
