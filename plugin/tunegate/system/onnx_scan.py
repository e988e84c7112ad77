"""A scan of an ONNX file before it is parsed: it must be of a moderate size in every way, and its
data files are collected, wherever in it a tensor stands.

Parsed, a few bytes become a large object each; the parser itself has no limits.
"""

from __future__ import annotations

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


def data_files(model: bytes) -> tuple[str, ...]:
    """The data files the model refers to, relative to it, each once and in order.

    Raises ModelError for a file whose parts do not fit together, that is too large, has
    too many parts, too many levels or names that are no names; and for a data file
    outside of the model's directory.
    """
    if len(model) > MAX_MODEL_BYTES:
        raise ModelError(too_large(len(model)))
    if not model:
        message = "an ONNX file without a graph"
        raise ModelError(message)
    names = list(dict.fromkeys(_scan(model)))
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


def _scan(data: bytes) -> list[str]:
    position, counted = 0, 0
    inside = [(len(data), _MODEL)]
    found: list[str] = []
    while inside:
        end, fields = inside[-1]
        if position >= end:
            _require(position == end)
            inside.pop()
            continue
        tag, position = _varint(data, position)
        counted += 1
        _require_few(counted)
        if tag & 7 != _LENGTH:
            position = _behind_number(data, position, tag & 7)
            continue
        length, position = _varint(data, position)
        _require(position + length <= end)
        below = fields.get(tag >> 3)
        if isinstance(below, dict):
            inside.append((position + length, below))
            _require_shallow(len(inside))
            continue
        if below == _NAME:
            _require_short(length)
        elif below == _DATA:
            found += _location(data[position : position + length])
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


def _location(entry: bytes) -> list[str]:
    try:
        parsed = onnx.StringStringEntryProto.FromString(entry)
    except DecodeError as error:
        raise NoOnnxError(_NO_ONNX) from error
    return [parsed.value] if parsed.key == "location" else []


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
        if field.name == "external_data":
            found[field.number] = _DATA
        elif field.message_type is not None:
            found[field.number] = _fields_of(field.message_type, known)
        elif field.type == field.TYPE_STRING and field.name not in _FREE_TEXT:
            found[field.number] = _NAME
    return found


_MODEL = _fields_of(onnx.ModelProto.DESCRIPTOR, {})
