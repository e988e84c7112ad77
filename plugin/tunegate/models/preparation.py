"""Prepares an ONNX file for whatever runs it: the model as it is, and the inputs of one inference.

ONNX Runtime gets the model as it is, with its dynamic dimensions; `compilable.py` fixes shapes for
compilers on demand.
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import onnx

from tunegate.errors import ModelError, UnreadModelError, UnsupportedModelError
from tunegate.models.compilable import compilable
from tunegate.models.graph import custom_operators
from tunegate.models.model_inputs import (
    dtype_of,
    kind_of_input,
    model_input,
    real_inputs,
    stated_size,
)
from tunegate.models.narrow_types import BITS
from tunegate.models.prepared import OPEN, Compilable, PreparedModel, Tensor
from tunegate.models.saved_model import PROTOBUF_LIMIT_BYTES, save, save_beside, weights_of
from tunegate.ports import Shapes
from tunegate.regular_files import opened_inside
from tunegate.review.input_shapes import ShapeLevel, resolve_shapes
from tunegate.system.onnx_scan import is_external, scanned_model, tensors_in
from tunegate.system.processes.memory_limit import memory_problem

Dimension = onnx.TensorShapeProto.Dimension
_OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS = 4


def prepare(model: Path, *, shapes: Shapes, into: Path, path: str) -> PreparedModel:
    """Prepares the model in the file `model`, called `path` in messages. onnx's own checker is not
    used: it knows fewer versions and is stricter than ONNX Runtime, which checks the model again.

    Raises ModelError: missing, no ONNX model, or an input shape that is left open or invalid.
    """
    with _naming_model(model, path):
        proto, data_names = scanned_model(model.read_bytes())
        if not proto.graph.output:
            message = "it has no output, so nothing of it can be compared: give it one"
            raise UnreadModelError(message)
        original, weights = _gather_data(proto, model.parent, into) if data_names else (model, None)
    _fix_shapes(proto, shapes, path)
    return PreparedModel(
        original=original,
        weights=weights,
        inputs=tuple(tensor_of(value, path) for value in real_inputs(proto.graph)),
        outputs=tuple(output.name for output in proto.graph.output),
        make_compilable=partial(_compilable, original, weights, shapes, into, path),
        custom_operators=custom_operators(proto),
    )


@contextmanager
def _naming_model(model: Path, path: str) -> Iterator[None]:
    """Turns errors of reading a model into one that names it."""
    try:
        yield
    except FileNotFoundError as error:
        message = f"{path}: its file {model.name} is missing. Commit it, or pull it with Git LFS."
        raise ModelError(message) from error
    except UnreadModelError as error:
        raise ModelError(f"{path}: {error}.") from error
    except Exception as error:
        problem = memory_problem(error)
        if problem:
            raise UnsupportedModelError(f"{path}: {problem}.") from error
        # protobuf raises DecodeError, ValueError and more, by version
        message = f"{path}: not a valid ONNX model ({_first_line(error)}). Export it again."
        raise ModelError(message) from error


def _gather_data(proto: onnx.ModelProto, directory: Path, into: Path) -> tuple[Path, Path | None]:
    """Writes the model with its data into one file, or into two if the weights are too large; then
    `proto` does not get the weights. Returns both paths."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / "model.onnx"
    data = DataFiles(proto, directory)
    in_files = sum(_place(tensor, data)[1] for tensor in filter(is_external, tensors_in(proto)))
    if proto.ByteSize() + in_files < PROTOBUF_LIMIT_BYTES:
        take_in(proto, data)
        save(proto, file)
    else:
        save_beside(proto, data.sizes_bytes, data.open, file)
    return file, weights_of(file)


def _raise_version(proto: onnx.ModelProto) -> bool:
    """Raises a version before 4, in which every initializer had to be an input too: exporters
    ignored that, and so does ONNX Runtime. Returns whether it did."""
    is_old = proto.ir_version < _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    if is_old:
        proto.ir_version = _OLDEST_IR_WITHOUT_INITIALIZERS_AS_INPUTS
    return is_old


def _compilable(
    original: Path, weights: Path | None, shapes: Shapes, into: Path, path: str
) -> Compilable:
    """Makes the compiler's files. Reads the model again: its weights need not stay in memory until
    then."""
    if weights is not None:
        size_bytes = weights.stat().st_size
        message = (
            f"{path}: it has {size_bytes / 2**30:.1f} GiB of weights, and only ONNX Runtime takes "
            "models of 2 GiB and more here."
        )
        raise UnsupportedModelError(message)
    with _naming_model(original, path):
        proto = onnx.ModelProto.FromString(original.read_bytes())  # its numbers are all in it
    _require_tensors(proto, path)
    is_raised = _raise_version(proto)
    was_open = any(None in model_input(value).dimensions for value in real_inputs(proto.graph))
    _fix_shapes(proto, shapes, path)
    inputs = {value.name for value in real_inputs(proto.graph)}
    file = None if is_raised or shapes else original
    return compilable(proto, file, into, path, inputs=inputs, was_open=was_open)


def _require_tensors(proto: onnx.ModelProto, path: str) -> None:
    """Raises UnsupportedModelError for inputs that are no tensors, which static shapes require."""
    for value in real_inputs(proto.graph):
        kind = kind_of_input(value)
        if kind.form != "":
            message = f"{path}: input {value.name} is of the kind {kind.kind}: only ONNX Runtime"
            raise UnsupportedModelError(f"{message} can be given one.")
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            message = f"{path}: input {value.name} has texts: only ONNX Runtime can be given these."
            raise UnsupportedModelError(message)


def _fix_shapes(proto: onnx.ModelProto, shapes: Shapes, path: str) -> None:
    inputs = real_inputs(proto.graph)
    resolution = resolve_shapes([*map(model_input, inputs)], [ShapeLevel(shapes=shapes)])
    if resolution.problems:
        raise ModelError(f"{path}: {' '.join(resolution.problems)}")
    for value in inputs:
        shape = kind_of_input(value).tensor.shape
        if value.name in resolution.shapes:
            del shape.dim[:]
            shape.dim.extend(Dimension(dim_value=size) for size in resolution.shapes[value.name])


def tensor_of(value: onnx.ValueInfoProto, path: str) -> Tensor:
    """Returns the input, with `OPEN` for dimensions left open. Raises ModelError for a map, and for
    others that cannot be given."""
    form, kind, what = kind_of_input(value)
    if form is None:
        message = (
            f"{path}: input {value.name} is of the kind {what}, and only tensors, sequences of "
            "them and optional ones can be given."
        )
        raise ModelError(message)
    dtype = dtype_of(kind)
    if not dtype:
        message = f"{path}: input {value.name} has the element type {kind.elem_type}, which ONNX"
        raise ModelError(f"{message} does not have. Export it again.")
    sizes = tuple(map(stated_size, kind.shape.dim))
    is_ranked = kind.HasField("shape") or not form
    shape = tuple(OPEN if size is None else size for size in sizes) if is_ranked else (OPEN,)
    return Tensor(value.name, shape, dtype, form)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__


# Moves the numbers of tensors from data files into the model, wherever in it a tensor is.


class DataFiles:
    """The data files of a model, by their names in it. Each is open only while it is read: a model
    may have more of them than a process may open."""

    def __init__(self, proto: onnx.ModelProto, directory: Path) -> None:
        """Raises ModelError if one is missing."""
        self._directory = directory
        self.sizes_bytes: dict[str, int] = {}
        for tensor in filter(is_external, tensors_in(proto)):
            name = _location(tensor)
            if name not in self.sizes_bytes:
                with self.open(name) as file:
                    self.sizes_bytes[name] = os.fstat(file.fileno()).st_size

    def open(self, name: str) -> BinaryIO:
        file = opened_inside(self._directory, name) if name else None
        if file is None:
            message = f"its data file {name!r} is missing: commit it, or pull it with Git LFS"
            raise UnreadModelError(message)
        return file


def take_in(proto: onnx.ModelProto, data: DataFiles) -> None:
    """Puts the numbers of data files into the model."""
    for name, tensors in groupby(filter(is_external, tensors_in(proto)), _location):
        with data.open(name) as file:
            for tensor in tensors:
                offset, size_bytes = _place(tensor, data)
                file.seek(offset)
                tensor.raw_data = file.read(size_bytes)
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")


def _place(tensor: onnx.TensorProto, data: DataFiles) -> tuple[int, int]:
    """Returns the offset of a tensor's numbers and their size in bytes, which follows from the
    shape where none is stated. Raises ModelError if the file is too short."""
    entries, name = _entries(tensor), _location(tensor)
    offset = int(entries.get("offset") or 0)
    length = int(entries.get("length") or 0) or _bytes_of_numbers(tensor)
    if offset + length > data.sizes_bytes[name]:
        raise ModelError(f"its data file {name!r} ends before tensor {tensor.name[:100]!r} does")
    return offset, length


def _bytes_of_numbers(tensor: onnx.TensorProto) -> int:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    bits = BITS.get(str(dtype), 8 * dtype.itemsize)
    return max(0, int(-(-math.prod(tensor.dims) * bits // 8)))


def _location(tensor: onnx.TensorProto) -> str:
    return _entries(tensor).get("location", "")


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}
