"""The inputs of an ONNX graph, with the dimensions that it leaves open."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path

import onnx

from tunegate.artifacts.outlines import ModelInput
from tunegate.edges.models.input_forms import made_of, stated_size
from tunegate.edges.models.scan import parsed_model
from tunegate.errors import ModelError


def inputs_of_file(file: Path) -> tuple[ModelInput, ...] | None:
    """The inputs of a model in a file, or None where it cannot be read."""
    values = values_of_file(file)
    return None if values is None else tuple(map(model_input, values))


def values_of_file(file: Path) -> tuple[onnx.ValueInfoProto, ...] | None:
    """The inputs as the graph has them, or None where it cannot be read."""
    status = file.stat()
    return _of_file(file, status.st_mtime_ns, status.st_size)


@cache
def _of_file(
    file: Path, _modified: int, _size_bytes: int
) -> tuple[onnx.ValueInfoProto, ...] | None:
    """The stages of a run ask for the same files. Copies, for a part keeps all of its model."""
    try:
        return tuple(map(deepcopy, real_inputs(parsed_model(file.read_bytes()).graph)))
    except ModelError:
        return None


def graph_inputs(graph: onnx.GraphProto) -> tuple[ModelInput, ...]:
    """The inputs that a caller gives: no weights, which old exporters list too."""
    return tuple(map(model_input, real_inputs(graph)))


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The graph's inputs without its weights."""
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {tensor.values.name for tensor in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in weights]


def model_input(value: onnx.ValueInfoProto) -> ModelInput:
    """An input that is no tensor has the dimensions of the tensors in it; a map has none."""
    made = made_of(value)
    kind, is_tensor = made.tensor, made.form == ""
    dims = kind.shape.dim
    symbols = tuple(d.dim_param for d in dims)
    return ModelInput(
        value.name,
        tuple(map(stated_size, dims)),
        symbols if any(symbols) else (),
        is_ranked=made.form is None or kind.HasField("shape"),
        dtype=_type(kind.elem_type) if is_tensor else "",
        is_several=bool(made.form),
    )


def _type(number: int) -> str:
    """Returns NumPy's name of a type, or ONNX's for one that NumPy lacks."""
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number))
    except KeyError:
        return f"type {number}"
