"""The numbers of a model's tensors, from the files beside it into the model,
wherever in it a tensor stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from tunegate.edges.models.scan import data_files
from tunegate.errors import ModelError
from tunegate.regular_files import opened_inside

_TENSOR = onnx.TensorProto.DESCRIPTOR.full_name


def with_data(model: bytes, directory: Path) -> tuple[onnx.ModelProto, bool]:
    """The model, whose data files lie in this directory, and whether it had any. Raises ModelError
    for what is no model and for data that are not there; protobuf's errors for the rest."""
    has_files = bool(data_files(model))
    proto = onnx.ModelProto.FromString(model)
    if has_files:
        for tensor in _tensors(proto):
            if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
                _take_in(tensor, directory)
    return proto, has_files


def _tensors(message: Any) -> Iterator[onnx.TensorProto]:
    """Yields all tensors of a message, by protobuf's own reflection: a list of places would miss
    one."""
    waiting = [message]
    while waiting:
        for field, value in waiting.pop().ListFields():
            if field.message_type is None:
                continue
            parts = [value] if hasattr(value, "ListFields") else value
            if field.message_type.full_name == _TENSOR:
                yield from parts
            else:
                waiting += parts


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
