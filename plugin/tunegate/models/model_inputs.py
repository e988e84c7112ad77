"""The inputs of an ONNX graph, with the dimensions it leaves open."""

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
    """Returns the inputs of a model file, None if it cannot be read."""
    values = values_of_file(file)
    return None if values is None else tuple(map(model_input, values))


def values_of_file(file: Path) -> tuple[onnx.ValueInfoProto, ...] | None:
    """Returns the inputs as the graph has them, None if the file cannot be read."""
    status = file.stat()
    return _read_inputs(file, status.st_mtime_ns, status.st_size)


@cache
def _read_inputs(
    file: Path, _modified: int, _size_bytes: int
) -> tuple[onnx.ValueInfoProto, ...] | None:
    """Reads the inputs once for all stages of a run. Returns copies, as a part would keep the whole
    model in memory."""
    try:
        return tuple(map(deepcopy, real_inputs(parsed_model(file.read_bytes()).graph)))
    except ModelError:
        return None


def defaults_of_file(file: Path) -> set[str]:
    """Returns the inputs that a caller may leave out, as initializers have their defaults. None of
    a file that is no model: whoever runs it says so."""
    try:
        graph = parsed_model(file.read_bytes()).graph
    except ModelError:
        return set()
    return {each.name for each in graph.input} - {each.name for each in real_inputs(graph)}


def graph_inputs(graph: onnx.GraphProto) -> tuple[ModelInput, ...]:
    """Returns the inputs that a caller gives, without the weights that old exporters list too."""
    return tuple(map(model_input, real_inputs(graph)))


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Returns the graph's inputs without its weights."""
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {tensor.values.name for tensor in graph.sparse_initializer}
    return [value for value in graph.input if value.name not in weights]


def model_input(value: onnx.ValueInfoProto) -> ModelInput:
    """Returns the input. A non-tensor has the dimensions of the tensors in it; a map has none."""
    kinds = kind_of_input(value)
    kind, is_tensor = kinds.tensor, kinds.form == ""
    dims = kind.shape.dim
    symbols = tuple(d.dim_param for d in dims)
    return ModelInput(
        value.name,
        tuple(map(stated_size, dims)),
        symbols if any(symbols) else (),
        is_ranked=kinds.form is None or kind.HasField("shape"),
        dtype=(dtype_of(kind) or f"type {kind.elem_type}") if is_tensor else "",
        is_several=bool(kinds.form),
    )


def dtype_of(tensor: onnx.TypeProto.Tensor) -> str:
    """Returns NumPy's name of the tensor's type, '' for a number that is no type of ONNX."""
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except KeyError:
        return ""


# The form of an input: a tensor, a sequence of tensors, or an optional one of these.

_FORMS: dict[tuple[str, ...], InputForm] = {
    ("tensor_type",): "",
    ("sequence_type", "tensor_type"): "sequence",
    ("optional_type", "tensor_type"): "optional",
    ("optional_type", "sequence_type", "tensor_type"): "optional sequence",
}


class InputKind(NamedTuple):
    """The form of an input, and the type of its tensors. `form` is None for maps and others that
    cannot be given; `kind` is ONNX's word for the form."""

    form: InputForm | None
    tensor: onnx.TypeProto.Tensor
    kind: str


def kind_of_input(value: onnx.ValueInfoProto) -> InputKind:
    """Returns the kind of an input, looking through sequences and optional values."""
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
    """Returns the size that a model states, which may be 0; None for an open dimension."""
    is_said = dimension.HasField("dim_value") and dimension.dim_value >= 0
    return int(dimension.dim_value) if is_said else None
