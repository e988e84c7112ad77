"""The inputs of an ONNX graph, with the dimensions that it leaves open."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import NamedTuple

import onnx

from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.inputs import InputForm
from tunegate.errors import ModelError
from tunegate.system.onnx_scan import parsed_model


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


# The form of an input: a tensor, a sequence of them, or one of these that may be absent.

_FORMS: dict[tuple[str, ...], InputForm] = {
    ("tensor_type",): "",
    ("sequence_type", "tensor_type"): "sequence",
    ("optional_type", "tensor_type"): "optional",
    ("optional_type", "sequence_type", "tensor_type"): "optional sequence",
}


class InputKind(NamedTuple):
    """The form of an input, and the type of its tensors; `form` is None for maps and others, which
    cannot be given, and `kind` is ONNX's word for what it is."""

    form: InputForm | None
    tensor: onnx.TypeProto.Tensor
    kind: str


def made_of(value: onnx.ValueInfoProto) -> InputKind:
    """Looks through sequences and optional values."""
    kinds: list[str] = []
    inner = value.type
    while True:
        kind = str(inner.WhichOneof("value"))
        kinds.append(kind)
        if kind not in {"sequence_type", "optional_type"} or len(kinds) > len(_FORMS):
            break
        inner = getattr(inner, kind).elem_type
    words = " of ".join(each.removesuffix("_type").replace("_", " ") for each in kinds)
    return InputKind(_FORMS.get(tuple(kinds)), inner.tensor_type, words)


def stated_size(dimension: onnx.TensorShapeProto.Dimension) -> int | None:
    """The size that a model says, which may be 0; None where it leaves a dimension open."""
    is_said = dimension.HasField("dim_value") and dimension.dim_value >= 0
    return int(dimension.dim_value) if is_said else None
