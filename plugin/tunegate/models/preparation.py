"""An ONNX file made ready for whatever runs it: as it is, and the inputs of one inference.

ONNX Runtime gets the model as it is, dynamic dimensions and all; `compilable.py` fixes its shapes
for compilers, once one asks.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import onnx

from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.compilable import compilable
from tunegate.models.model_inputs import made_of, model_input, real_inputs, stated_size
from tunegate.models.prepared import OPEN, Compilable, PreparedModel, Tensor
from tunegate.models.saved_model import save, weights_of
from tunegate.ports import Shapes
from tunegate.regular_files import opened_inside
from tunegate.review.input_shapes import ShapeLevel, resolve_shapes
from tunegate.system.onnx_scan import data_files, is_external, tensors_in
from tunegate.system.processes.memory_limit import memory_problem

Dimension = onnx.TensorShapeProto.Dimension
_OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS = 4


def prepare(model: Path, *, shapes: Shapes, into: Path, path: str) -> PreparedModel:
    """Prepare the model in the file `model`, called `path` in messages. onnx's own checker is
    not asked: it knows fewer versions and is stricter than ONNX Runtime, which checks it again.

    Raises ModelError: missing, no ONNX model, or an input shape that is left open or is not one.
    """
    proto, has_files = _read(model, path)
    original, weights = _in_one_place(proto, into) if has_files else (model, None)
    _fix_shapes(proto, shapes, path)
    return PreparedModel(
        original=original,
        weights=weights,
        inputs=tuple(tensor_of(value, path) for value in real_inputs(proto.graph)),
        outputs=tuple(output.name for output in proto.graph.output),
        make_compilable=partial(_compilable, original, shapes, into, path),
    )


def _read(model: Path, path: str) -> tuple[onnx.ModelProto, bool]:
    """The model with all its data, and whether they lie beside it."""
    try:
        return with_data(model.read_bytes(), model.parent)
    except FileNotFoundError as error:
        message = f"{path}: its file {model.name} is missing. Commit it, or pull it with Git LFS."
        raise ModelError(message) from error
    except Exception as error:
        problem = memory_problem(error)
        if problem:
            raise UnsupportedModelError(f"{path}: {problem}.") from error
        # protobuf raises DecodeError, ValueError and more, by version
        message = f"{path}: not a valid ONNX model ({_first_line(error)}). Export it again."
        raise ModelError(message) from error


def _in_one_place(proto: onnx.ModelProto, into: Path) -> tuple[Path, Path | None]:
    """The model with its data. Weights that are saved in a file of their own are gone from
    `proto`."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / "model.onnx"
    save(proto, file)
    return file, weights_of(file)


def _raise_version(proto: onnx.ModelProto) -> bool:
    """Raises a version before 4, where every initializer had to be an input too: exporters ignored
    that, and so does ONNX Runtime."""
    is_old = proto.ir_version < _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    if is_old:
        proto.ir_version = _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    return is_old


def _compilable(original: Path, shapes: Shapes, into: Path, path: str) -> Compilable:
    """Reads the model again: until somebody asks, nobody needs to keep its weights."""
    proto, _ = _read(original, path)
    _require_tensors(proto, path)
    is_raised = _raise_version(proto)
    _fix_shapes(proto, shapes, path)
    inputs = {value.name for value in real_inputs(proto.graph)}
    file = None if is_raised or shapes else original
    return compilable(proto, file, into, path, inputs=inputs)


def _require_tensors(proto: onnx.ModelProto, path: str) -> None:
    """Whatever needs static shapes takes tensors. Raises UnsupportedModelError."""
    for value in real_inputs(proto.graph):
        made = made_of(value)
        if made.form != "":
            message = f"{path}: input {value.name} is of the kind {made.kind}: only ONNX Runtime"
            raise UnsupportedModelError(f"{message} can be given one.")


def _fix_shapes(proto: onnx.ModelProto, shapes: Shapes, path: str) -> None:
    inputs = real_inputs(proto.graph)
    found = resolve_shapes([*map(model_input, inputs)], [ShapeLevel(shapes=shapes)])
    if found.problems:
        raise ModelError(f"{path}: {' '.join(found.problems)}")
    for value in inputs:
        shape = made_of(value).tensor.shape
        if value.name in found.shapes:
            del shape.dim[:]
            shape.dim.extend(Dimension(dim_value=size) for size in found.shapes[value.name])


def tensor_of(value: onnx.ValueInfoProto, path: str) -> Tensor:
    """The input; a dimension that is left open is `OPEN`. Raises ModelError for a map, and for
    other things that cannot be given."""
    form, kind, what = made_of(value)
    if form is None:
        message = (
            f"{path}: input {value.name} is of the kind {what}, and only tensors, sequences of "
            "them and optional ones can be given."
        )
        raise ModelError(message)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    sizes = tuple(map(stated_size, kind.shape.dim))
    is_ranked = kind.HasField("shape") or not form
    shape = tuple(OPEN if size is None else size for size in sizes) if is_ranked else (OPEN,)
    return Tensor(value.name, shape, str(dtype), form)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__


# The numbers of a model's tensors, from the files beside it into the model, wherever in it a
# tensor stands.


def with_data(model: bytes, directory: Path) -> tuple[onnx.ModelProto, bool]:
    """The model, whose data files lie in this directory, and whether it had any. Raises ModelError
    for what is no model and for data that are not there; protobuf's errors for the rest."""
    has_files = bool(data_files(model))
    proto = onnx.ModelProto.FromString(model)
    if has_files:
        for tensor in filter(is_external, tensors_in(proto)):
            _take_in(tensor, directory)
    return proto, has_files


def _take_in(tensor: onnx.TensorProto, directory: Path) -> None:
    where = {entry.key: entry.value for entry in tensor.external_data}
    name = where.get("location", "")
    offset, length = int(where.get("offset") or 0), int(where.get("length") or -1)
    file = opened_inside(directory, name) if name else None
    if file is None:
        message = f"its data file {name!r} is missing: commit it, or pull it with Git LFS"
        raise ModelError(message)
    with file:
        file.seek(offset)
        data = file.read(length)
    if len(data) < length:
        message = f"its data file {name!r} ends before tensor {tensor.name[:100]!r} does"
        raise ModelError(message)
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    tensor.raw_data = data
