"""An ONNX file made ready for whatever runs it: as it is, and the inputs of one inference.

ONNX Runtime gets the model as it is, dynamic dimensions and all; `compilable.py` fixes its shapes
for compilers, once one asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import onnx

from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.models.compilable import compilable
from tunegate.models.model_inputs import made_of, model_input, real_inputs, stated_size
from tunegate.models.prepared import OPEN, Compilable, PreparedModel, Tensor
from tunegate.models.saved_model import PROTOBUF_LIMIT_BYTES, save, save_beside, weights_of
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
    with _named(model, path):
        proto, names = _read(model)
        original, weights = _in_one_place(proto, model.parent, into) if names else (model, None)
    _fix_shapes(proto, shapes, path)
    return PreparedModel(
        original=original,
        weights=weights,
        inputs=tuple(tensor_of(value, path) for value in real_inputs(proto.graph)),
        outputs=tuple(output.name for output in proto.graph.output),
        make_compilable=partial(_compilable, original, weights, shapes, into, path),
    )


@contextmanager
def _named(model: Path, path: str) -> Iterator[None]:
    """Turns what is raised while a model is read into an error that names it."""
    try:
        yield
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


def _read(model: Path) -> tuple[onnx.ModelProto, Sequence[str]]:
    """The model, and the names of its data files, in which its numbers still are."""
    content = model.read_bytes()
    names = data_files(content)
    return onnx.ModelProto.FromString(content), names


def _in_one_place(proto: onnx.ModelProto, directory: Path, into: Path) -> tuple[Path, Path | None]:
    """The model with its data: in one file, or in one and another for the weights, which are not
    taken into `proto` then."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / "model.onnx"
    with ExitStack() as stack:
        data = _opened_data(proto, directory, stack)
        if proto.ByteSize() + _bytes_in(proto, data) < PROTOBUF_LIMIT_BYTES:
            take_in(proto, data)
            save(proto, file)
        else:
            save_beside(proto, data, file)
    return file, weights_of(file)


def _raise_version(proto: onnx.ModelProto) -> bool:
    """Raises a version before 4, where every initializer had to be an input too: exporters ignored
    that, and so does ONNX Runtime."""
    is_old = proto.ir_version < _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    if is_old:
        proto.ir_version = _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    return is_old


def _compilable(
    original: Path, weights: Path | None, shapes: Shapes, into: Path, path: str
) -> Compilable:
    """Reads the model again: until somebody asks, nobody needs to keep its weights."""
    if weights is not None:
        size_bytes = weights.stat().st_size
        message = (
            f"{path}: it has {size_bytes / 2**30:.1f} GiB of weights, and only ONNX Runtime takes "
            "models of 2 GiB and more here."
        )
        raise UnsupportedModelError(message)
    with _named(original, path):
        proto, _ = _read(original)
    _require_tensors(proto, path)
    is_raised = _raise_version(proto)
    was_open = any(None in model_input(value).dimensions for value in real_inputs(proto.graph))
    _fix_shapes(proto, shapes, path)
    inputs = {value.name for value in real_inputs(proto.graph)}
    file = None if is_raised or shapes else original
    return compilable(proto, file, into, path, inputs=inputs, was_open=was_open)


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

_Data = Mapping[str, BinaryIO]
"""Data files, by their names in the model."""


def with_data(model: bytes, directory: Path) -> tuple[onnx.ModelProto, bool]:
    """The model, whose data files lie in this directory, and whether it had any. Raises ModelError
    for what is no model and for data that are not there; protobuf's errors for the rest."""
    has_files = bool(data_files(model))
    proto = onnx.ModelProto.FromString(model)
    if has_files:
        with ExitStack() as stack:
            take_in(proto, _opened_data(proto, directory, stack))
    return proto, has_files


def take_in(proto: onnx.ModelProto, data: _Data) -> None:
    """Puts the numbers into the model."""
    for tensor in filter(is_external, tensors_in(proto)):
        name, offset, size_bytes = _place(tensor, data)
        data[name].seek(offset)
        tensor.raw_data = data[name].read(size_bytes)
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def _opened_data(proto: onnx.ModelProto, directory: Path, stack: ExitStack) -> _Data:
    """The data files, as long as the stack is. Raises ModelError for one that is missing."""
    found: dict[str, BinaryIO] = {}
    for tensor in filter(is_external, tensors_in(proto)):
        name = _entries(tensor).get("location", "")
        if name in found:
            continue
        file = opened_inside(directory, name) if name else None
        if file is None:
            message = f"its data file {name!r} is missing: commit it, or pull it with Git LFS"
            raise ModelError(message)
        found[name] = stack.enter_context(file)
    return found


def _bytes_in(proto: onnx.ModelProto, data: _Data) -> int:
    """The size of all numbers that are in data files. Raises ModelError where a file is short."""
    return sum(_place(tensor, data)[2] for tensor in filter(is_external, tensors_in(proto)))


def _place(tensor: onnx.TensorProto, data: _Data) -> tuple[str, int, int]:
    """The file of a tensor's numbers, their offset and their size in bytes. Raises ModelError where
    the file is too short for them."""
    entries = _entries(tensor)
    name = entries.get("location", "")
    size_bytes = os.fstat(data[name].fileno()).st_size
    offset = int(entries.get("offset") or 0)
    said = entries.get("length")
    length = int(said) if said else max(0, size_bytes - offset)
    if offset + length > size_bytes:
        message = f"its data file {name!r} ends before tensor {tensor.name[:100]!r} does"
        raise ModelError(message)
    return name, offset, length


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}
