"""ONNX Runtime's knowledge of every tensor of a model before it runs: its type, and its shape where
that follows from the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
import numpy as np
import onnx

from tunegate.models.reference.onnx_runtime import onnxruntime

_TENSOR = "tensor("
_NUMPY_NAMES = {"float": "float32", "double": "float64"}


class ValueType(msgspec.Struct, frozen=True):
    """`dtype` is NumPy's name, '' for what is no tensor of numbers; a shape that depends on data is
    None."""

    dtype: str
    shape: tuple[int, ...] | None

    @property
    def is_static(self) -> bool:
        return bool(self.dtype) and self.shape is not None


def value_types(model: onnx.ModelProto) -> dict[str, ValueType]:
    """Returns the types of all that the nodes of a model make, and of its inputs and outputs.
    Raises what ONNX Runtime raises, which has no common base class."""
    known = {value.name for value in model.graph.output}
    watched = onnx.ModelProto.FromString(model.SerializeToString())
    made = [name for node in model.graph.node for name in node.output if name]
    for name in dict.fromkeys(made):
        if name not in known:
            watched.graph.output.add(name=name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        watched.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    values = [*session.get_inputs(), *session.get_outputs()]
    scalars = _scalars(model) if any(not value.shape for value in values) else set()
    return dict(_types(values, scalars))


def _types(
    values: Iterable[onnxruntime.NodeArg], scalars: Collection[str]
) -> Iterable[tuple[str, ValueType]]:
    for value in values:
        dims = value.shape
        # No dimensions are a scalar's, and what ONNX Runtime says where it knows nothing.
        is_known = bool(dims) or value.name in scalars
        is_static = is_known and all(isinstance(n, int) and n >= 0 for n in dims)
        yield value.name, ValueType(_dtype(value.type), tuple(dims) if is_static else None)


def _scalars(model: onnx.ModelProto) -> set[str]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    return {
        value.name
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape") and not value.type.tensor_type.shape.dim
    }


def _dtype(text: str) -> str:
    """Returns the dtype of ONNX Runtime's `tensor(float)`."""
    if not text.startswith(_TENSOR):
        return ""
    name = text.removeprefix(_TENSOR).removesuffix(")")
    name = _NUMPY_NAMES.get(name, name)
    try:
        return str(np.dtype(name))
    except TypeError:
        return ""
