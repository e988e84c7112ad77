"""A scan of an ONNX file before it is parsed: it must be of a moderate size in every way, and its
data files are collected, wherever in it a tensor stands.

Parsed, a few bytes become a large object each; the parser itself has no limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from tunegate.errors import ModelError, NoOnnxError

MAX_MODEL_BYTES = 2**31 - 1
"""The largest protobuf file. Tensors that do not fit are kept in data files."""
_MAX_FIELDS = 3_000_000
"""A language model of 30,000 nodes has half a million; so many are counted in two seconds."""
_DEEPEST = 100
"""The deepest nesting that protobuf reads; a branch inside a branch is three deeper."""
_MAX_NAME_BYTES = 64 * 1024
_MAX_PATH = 4096
_FREE_TEXT = {"doc_string", "value", "denotation"}

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MORE = 0x80
_MAX_VARINT_BITS = 70

_Fields = dict[int, Any]
"""The fields of a message that are read, by number: the fields of a message inside it, or what
else is read. All others are stepped over."""
_NO_ONNX = "not an ONNX file, or cut short"
_NAME = "name"
_DATA = "data"
_TENSOR = onnx.TensorProto.DESCRIPTOR.full_name
_NUMBER = re.compile(r"[0-9]{1,18}")
_OWN_NUMBERS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "string_data",
)
_IN_MEMORY = "*/_ORT_MEM_ADDR_/*"
"""Where ONNX Runtime takes the offset for an address in its own memory."""


def data_files(model: bytes) -> tuple[str, ...]:
    """The data files the model refers to, relative to it, each once and in order.

    Raises ModelError for a file whose parts do not fit together, that is too large, has
    too many parts, too many levels or names that are no names; for a tensor that says in two
    ways where its numbers are; and for a data file outside of the model's directory.
    """
    if len(model) > MAX_MODEL_BYTES:
        raise ModelError(too_large(len(model)))
    if not model:
        message = "an ONNX file without a graph"
        raise ModelError(message)
    if not _has_external_data(model):
        return ()
    names = list(dict.fromkeys(map(_data_file, filter(is_external, tensors_in(_parsed(model))))))
    for name in names:
        path = PurePosixPath(name)
        is_inside = not path.is_absolute() and ".." not in path.parts and bool(path.name)
        if not is_inside or "\0" in name or len(name) > _MAX_PATH:
            message = f"its external data file {name[:200]!r} lies outside the model's directory"
            raise ModelError(message)
    return tuple(names)


def parsed_model(model: bytes) -> onnx.ModelProto:
    """The model, looked through before. Raises ModelError for what `data_files` refuses, and what
    is no ONNX file."""
    data_files(model)
    return _parsed(model)


def tensors_in(message: Any) -> Iterator[onnx.TensorProto]:
    """Yields all tensors of a message in their order, by protobuf's own reflection: a list of
    places would miss one."""
    waiting = [message]
    while waiting:
        inside = waiting.pop()
        if inside.DESCRIPTOR.full_name == _TENSOR:
            yield inside
            continue
        parts: list[Any] = []
        for field, value in inside.ListFields():
            if field.message_type is not None:
                parts += [value] if hasattr(value, "ListFields") else value
        waiting += reversed(parts)


def is_external(tensor: onnx.TensorProto) -> bool:
    """Returns whether the tensor's numbers are in a data file. ONNX Runtime goes by the location
    alone, so one that says both is refused by `data_files`."""
    return bool(tensor.external_data) or tensor.data_location == onnx.TensorProto.EXTERNAL


def _data_file(tensor: onnx.TensorProto) -> str:
    """The data file of an external tensor. Raises ModelError for one that two readers could
    understand in two ways."""
    entries: dict[str, str] = {entry.key: entry.value for entry in tensor.external_data}
    problem = ""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        problem = "names a data file, and its data location is the model itself"
    elif any(len(getattr(tensor, name)) for name in _OWN_NUMBERS):
        problem = "has numbers both in the model and in a data file"
    elif len(entries) != len(tensor.external_data):
        problem = "names its data file, or the place in it, twice"
    elif "location" not in entries:
        problem = "has its numbers in a data file, and names none"
    elif entries["location"] == _IN_MEMORY:
        problem = "names an address in memory for its data"
    elif any(not _NUMBER.fullmatch(entries.get(key, "0")) for key in ("offset", "length")):
        problem = "has an offset or a length in its data file that is no number"
    if problem:
        message = f"its tensor {tensor.name[:100]!r} {problem}"
        raise ModelError(message)
    return entries["location"]


def _parsed(model: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise NoOnnxError(_NO_ONNX) from error
    return proto


def too_large(size_bytes: int) -> str:
    return (
        f"it has {size_bytes / 2**30:.1f} GiB, and an ONNX file ends at 2: "
        "its tensors belong in data files"
    )


def _has_external_data(data: bytes) -> bool:
    """Returns whether any tensor has an entry of a data file, or says that it is in one; every
    part of the file is looked at."""
    position, counted = 0, 0
    inside = [(len(data), _MODEL)]
    found = False
    while inside:
        end, fields = inside[-1]
        if position >= end:
            _require(position == end)
            inside.pop()
            continue
        tag, position = _varint(data, position)
        counted += 1
        _require_few(counted)
        below = fields.get(tag >> 3)
        if tag & 7 != _LENGTH:
            found = found or below == _DATA
            position = _behind_number(data, position, tag & 7)
            continue
        length, position = _varint(data, position)
        _require(position + length <= end)
        if isinstance(below, dict):
            inside.append((position + length, below))
            _require_shallow(len(inside))
            continue
        if below == _NAME:
            _require_short(length)
        elif below == _DATA:
            found = True
        position += length
    return found


def _behind_number(data: bytes, position: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, position)[1]
    _require(kind in {_EIGHT_BYTES, _FOUR_BYTES})
    return position + (8 if kind == _EIGHT_BYTES else 4)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift >= _MAX_VARINT_BITS:
            raise NoOnnxError(_NO_ONNX)
        byte = data[position]
        position += 1
        if byte < _MORE:
            return value | byte << shift, position
        value |= (byte - _MORE) << shift
        shift += 7


def _require(is_so: bool) -> None:
    if not is_so:
        raise NoOnnxError(_NO_ONNX)


def _require_short(length: int) -> None:
    if length > _MAX_NAME_BYTES:
        message = f"it has a name of {length:,} bytes; the longest may have {_MAX_NAME_BYTES:,}"
        raise ModelError(message)


def _require_few(fields: int) -> None:
    if fields > _MAX_FIELDS:
        message = f"it has more than {_MAX_FIELDS:,} parts"
        raise ModelError(message)


def _require_shallow(levels: int) -> None:
    if levels > _DEEPEST:
        message = f"it is nested more than {_DEEPEST} levels deep"
        raise ModelError(message)


def _fields_of(message: Any, known: dict[str, _Fields]) -> _Fields:
    """Messages hold each other, so what is known already is not read again."""
    if message.full_name in known:
        return known[message.full_name]
    found = known[message.full_name] = {}
    for field in message.fields:
        if field.name in {"external_data", "data_location"}:
            found[field.number] = _DATA
        elif field.message_type is not None:
            found[field.number] = _fields_of(field.message_type, known)
        elif field.type == field.TYPE_STRING and field.name not in _FREE_TEXT:
            found[field.number] = _NAME
    return found


_MODEL = _fields_of(onnx.ModelProto.DESCRIPTOR, {})
