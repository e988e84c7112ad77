"""Reads arrays from users' files without trusting them: NumPy's, and ONNX's test data."""

import math
import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import PurePath
from typing import Any

import numpy as np
import onnx

from tunegate.artifacts.inputs import InputForm
from tunegate.errors import ModelError
from tunegate.system.onnx_scan import is_external

MAX_ARRAY_BYTES = 256 * 2**20
"""The largest file in bytes, and the largest array in one."""
SUFFIXES = (".npy", ".npz", ".pb")
_LISTED_FILE = b"PK\1\2"
"""The mark before each file in the list of an archive."""
_MOST_FILES = 2**14
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods that unpack only as much as is read; with others a few bytes unpack to
gigabytes at once."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_array(content: bytes, name: str, key: str) -> Any:
    """Returns the array in the content of the file `name`; from an archive the one named `key`.
    Raises ModelError in a few words, without the file's name: missing, too large, or a pickle."""

    def read(suffix: str) -> Any:
        if suffix == ".npz":
            return of_npy(_member(content, key))
        if suffix == ".npy":
            return of_npy(content)
        return tensor_array(onnx.TensorProto.FromString(content))

    return read_safely(content, name, read)


def read_safely(content: bytes, name: str, read: Callable[[str], Any]) -> Any:
    """Returns `read(suffix of the name)`. Raises ModelError in a few words for any error it raises,
    for too much content, and for an unknown suffix."""
    suffix = PurePath(name).suffix.lower()
    if len(content) > MAX_ARRAY_BYTES:
        raise ModelError(too_large_array())
    if suffix not in SUFFIXES:
        raise ModelError(f"it must end in {', '.join(SUFFIXES)}")
    try:
        return read(suffix)
    except ModelError:
        raise
    except Exception as error:
        # NumPy, zipfile, zlib and protobuf have no common base class
        kind = suffix.removeprefix(".")
        raise ModelError(f"it cannot be read as .{kind} ({str(error)[:100]})") from error


def of_npy(content: bytes) -> Any:
    """Returns the array of a `.npy` file. The header's size must be true: it decides how much
    memory is allocated."""
    stream = BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not known")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise ModelError("it holds a pickle, which is never loaded. Save plain numbers or texts")
    if math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise ValueError("its header and its size do not fit together")
    return np.load(BytesIO(content), allow_pickle=False)


def _archive(content: bytes) -> zipfile.ZipFile:
    """Opens an archive. Raises ModelError for one of very many files: to list five million takes
    minutes, and gigabytes of memory."""
    if (count := content.count(_LISTED_FILE)) > _MOST_FILES:
        raise ModelError(f"it lists {count:,} files, more than {_MOST_FILES:,}")
    return zipfile.ZipFile(BytesIO(content))


def _member(content: bytes, key: str) -> bytes:
    with _archive(content) as archive:
        names = [each.filename for each in archive.infolist()]
        member = f"{key}.npy" if f"{key}.npy" in names else names[0] if len(names) == 1 else ""
        if not member:
            names_text = ", ".join(name.removesuffix(".npy")[:40] for name in names[:5])
            raise ModelError(f"it has no array {key}; it has {names_text or 'none'}")
        return unpack_file(archive, member, MAX_ARRAY_BYTES)


def unpack_file(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Returns a file of an archive if it has at most `most` bytes. Raises ModelError if it has
    more, and ValueError for a method that may unpack more before it is read."""
    if archive.getinfo(name).compress_type not in _COMPRESSIONS:
        raise ValueError("it is not compressed as NumPy does it")
    with archive.open(name) as member:
        body = member.read(most + 1)
    if len(body) > most:
        raise ModelError(too_large_array())
    return body


def tensor_array(tensor: onnx.TensorProto) -> Any:
    """Returns the array of a tensor. Raises ValueError, and what the `onnx` package raises."""
    if not tensor.data_type:
        raise ValueError("no TensorProto")
    if is_external(tensor):
        raise ValueError("its numbers are in another file")
    if math.prod(tensor.dims) > MAX_ARRAY_BYTES or min(tensor.dims, default=0) < 0:
        raise ValueError("its shape and its size do not fit together")
    array = onnx.numpy_helper.to_array(tensor)
    is_text = tensor.data_type == onnx.TensorProto.STRING
    return _decode(array) if is_text else array


def _decode(array: Any) -> Any:
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.asarray(texts, dtype=object).reshape(array.shape)


def too_large_array() -> str:
    return f"it has more than the {MAX_ARRAY_BYTES >> 20} MiB that an input may have"


# Sequences and optional values in users' files, read without trusting them.

MAX_TENSORS = 1024
"""The longest sequence that is read."""


def read_value(content: bytes, name: str, key: str, form: InputForm) -> Any:
    """Returns the value of the file `name` for an input of this form: an array, a list of arrays,
    or None for an absent optional value. Raises ModelError in a few words."""
    if not form or (form == "optional" and not name.lower().endswith(".pb")):
        return read_array(content, name, key)

    def read(suffix: str) -> Any:
        if suffix == ".npy":
            raise ModelError("it holds one array, and the input is a sequence of them")
        if suffix == ".npz":
            return _read_archive(content)
        return _read_message(content, form)

    return read_safely(content, name, read)


def _read_archive(content: bytes) -> list[Any]:
    """Returns all arrays, ordered by the numbers in their names."""
    with _archive(content) as archive:
        _require_count(len(archive.infolist()))
        bytes_left, arrays = MAX_ARRAY_BYTES, []
        for name in sorted({*archive.namelist()}, key=_numeric_order):
            body = unpack_file(archive, name, bytes_left)
            bytes_left -= len(body)
            arrays.append(of_npy(body))
    return arrays


def _numeric_order(name: str) -> tuple[object, ...]:
    """Returns a sort key that puts `arr_10` after `arr_9`."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def _read_message(content: bytes, form: InputForm) -> Any:
    if form == "sequence":
        return _sequence_arrays(_parse(content, onnx.SequenceProto()))
    value = _parse(content, onnx.OptionalProto())
    if value.HasField("tensor_value") and form == "optional":
        return tensor_array(value.tensor_value)
    if value.HasField("sequence_value") and form == "optional sequence":
        return _sequence_arrays(value.sequence_value)
    if not any(value.HasField(kind) for kind in _KINDS):
        return None
    raise ValueError(f"it is no {form}")


def _parse(content: bytes, into: Any) -> Any:
    """Parses the message. Another message may parse too, but then has unknown fields."""
    into.ParseFromString(content)
    size = into.ByteSize()
    into.DiscardUnknownFields()
    if into.ByteSize() != size:
        raise ValueError(f"no {type(into).__name__}")
    return into


_KINDS = ("tensor_value", "sparse_tensor_value", "sequence_value", "map_value", "optional_value")


def _sequence_arrays(sequence: onnx.SequenceProto) -> list[Any]:
    """Returns the arrays of a sequence of tensors; nested sequences are rejected."""
    if sequence.elem_type != onnx.SequenceProto.TENSOR:
        raise ValueError("no sequence of tensors")
    _require_count(len(sequence.tensor_values))
    arrays, size = [], 0
    for tensor in sequence.tensor_values:
        arrays.append(tensor_array(tensor))
        size += arrays[-1].nbytes
        if size > MAX_ARRAY_BYTES:
            raise ModelError(too_large_array())
    return arrays


def _require_count(count: int) -> None:
    if count > MAX_TENSORS:
        raise ModelError(f"it has {count} tensors; a sequence may have {MAX_TENSORS}")
