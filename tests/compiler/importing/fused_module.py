"""A model as the compiler has it before it schedules anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from tvm import relax

from tests.support.prepared_models import prepared_model
from tunegate.compiler.importing.import_onnx import import_operators, legalize_and_fuse
from tunegate.compiler.layouts.layout import Layout
from tunegate.compiler.opening import import_in_layout


def fused_module(
    model: onnx.ModelProto, directory: Path, target: Any, *, channels_last: bool = False
) -> Any:
    """The module of kernels, of a model that is saved in the directory and imported."""
    operators = import_operators(prepared_model(model, directory), "m.onnx")
    return legalize_and_fuse(operators, target, channels_last=channels_last)


def imported(model: onnx.ModelProto, directory: Path, target: Any, layout: Layout = "nhwc") -> Any:
    """The module of kernels that the compiler makes of it in a layout."""
    return import_in_layout(prepared_model(model, directory), target, "m.onnx", (layout,))


def one_call(call: Any, inputs: Sequence[Any] = ()) -> Any:
    """A module whose function of these inputs returns the call."""
    builder = relax.BlockBuilder()
    with builder.function("main", list(inputs)):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(call))
        builder.emit_func_output(output)
    return builder.finalize()
