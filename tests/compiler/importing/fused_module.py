"""A model as the compiler has it before it schedules anything."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from tvm import relax

from tests.support.small_onnx import save
from tunegate.compiler.importing.import_onnx import import_operators, legalize_and_fuse
from tunegate.models.preparation import prepare


def fused_module(
    model: onnx.ModelProto, directory: Path, target: Any, *, channels_last: bool = False
) -> Any:
    """The module of kernels, of a model that is saved in the directory and imported."""
    file = save(model, directory / "m.onnx")
    prepared = prepare(file, shapes={}, into=directory / "p", path="m.onnx")
    return legalize_and_fuse(
        import_operators(prepared, "m.onnx"), target, channels_last=channels_last
    )


def one_call(call: Any, inputs: Sequence[Any] = ()) -> Any:
    """A module whose function of these inputs returns the call."""
    builder = relax.BlockBuilder()
    with builder.function("main", list(inputs)):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(call))
        builder.emit_func_output(output)
    return builder.finalize()
