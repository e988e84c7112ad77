"""Sequences and optional values that users keep in files, read without trusting them."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from typing import Any

import onnx

from tunegate.artifacts.input_rules import InputForm
from tunegate.edges.inputs.array_files import (
    MAX_ARRAY_BYTES,
    of_npy,
    read_array,
    read_safely,
    tensor_array,
    too_large_array,
    unpacked,
)
from tunegate.errors import ModelError

MAX_TENSORS = 1024
"""The longest sequence that is read."""


def read_value(content: bytes, name: str, key: str, form: InputForm) -> Any:
    """Returns the value of the file `name` for an input of this form: an array, a list of arrays,
    or None for an optional value that is absent. Raises ModelError in a few words."""
    if not form or (form == "optional" and not name.lower().endswith(".pb")):
        return read_array(content, name, key)

    def read(suffix: str) -> Any:
        if suffix == ".npy":
            raise ModelError("it holds one array, and the input is a sequence of them")
        if suffix == ".npz":
            return _of_archive(content)
        return _of_message(content, form)

    return read_safely(content, name, read)


def _of_archive(content: bytes) -> list[Any]:
    """All arrays, in the order of their numbers where their names have some."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        _require_count(len(archive.infolist()))
        left, arrays = MAX_ARRAY_BYTES, []
        for name in sorted({*archive.namelist()}, key=_placed):
            body = unpacked(archive, name, left)
            left -= len(body)
            arrays.append(of_npy(body))
    return arrays


def _placed(name: str) -> tuple[object, ...]:
    """`arr_10` comes after `arr_9`."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _of_message(content: bytes, form: InputForm) -> Any:
    if form == "sequence":
        return _of_sequence(_parsed(content, onnx.SequenceProto()))
    value = _parsed(content, onnx.OptionalProto())
    if value.HasField("tensor_value") and form == "optional":
        return tensor_array(value.tensor_value)
    if value.HasField("sequence_value") and form == "optional sequence":
        return _of_sequence(value.sequence_value)
    is_absent = not any(value.HasField(each) for each in _KINDS)
    if is_absent:
        return None
    raise ValueError(f"it is no {form}")


def _parsed(content: bytes, into: Any) -> Any:
    """The message. Other messages can be read as it, and have fields that it does not know then."""
    into.ParseFromString(content)
    size = into.ByteSize()
    into.DiscardUnknownFields()
    if into.ByteSize() != size:
        raise ValueError(f"no {type(into).__name__}")
    return into


_KINDS = ("tensor_value", "sparse_tensor_value", "sequence_value", "map_value", "optional_value")


def _of_sequence(sequence: onnx.SequenceProto) -> list[Any]:
    """Sequences inside of sequences are never looked into."""
    if sequence.elem_type != onnx.SequenceProto.TENSOR:
        raise ValueError("no sequence of tensors")
    _require_count(len(sequence.tensor_values))
    arrays, size = [], 0
    for tensor in sequence.tensor_values:
        arrays.append(tensor_array(tensor))
        size += arrays[-1].nbytes
        if size > MAX_ARRAY_BYTES:
            raise ModelError(too_large_array(size))
    return arrays


def _require_count(count: int) -> None:
    if count > MAX_TENSORS:
        raise ModelError(f"it has {count} tensors; a sequence may have {MAX_TENSORS}")
