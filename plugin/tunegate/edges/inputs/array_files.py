"""Arrays that users keep in files, read without trusting them: NumPy's, and ONNX's test data."""

from __future__ import annotations

import math
import zipfile
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import onnx

from tunegate.errors import ModelError

MAX_ARRAY_BYTES = 256 * 2**20
"""The size of the largest file, and of the largest array in one."""
SUFFIXES = (".npy", ".npz", ".pb")
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What unpacks no further than it is read; of others a few bytes unpack to gigabytes at once."""
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_array(content: bytes, name: str, key: str) -> Any:
    """The array in the content of the file `name`; of several in an archive that of `key`. Raises
    ModelError in a few words, without the file's name: no such file, too large, or a pickle."""
    suffix = PurePath(name).suffix.lower()
    if len(content) > MAX_ARRAY_BYTES:
        raise ModelError(_too_large(len(content)))
    try:
        if suffix == ".npy":
            return _of_npy(content)
        if suffix == ".npz":
            return _of_npy(_member(content, key))
        if suffix == ".pb":
            return _of_tensor(content)
    except ModelError:
        raise
    except Exception as error:
        # NumPy, zipfile, zlib and protobuf have no common base class
        kind = suffix.removeprefix(".")
        raise ModelError(f"it cannot be read as .{kind} ({str(error)[:100]})") from error
    raise ModelError(f"it must end in {', '.join(SUFFIXES)}")


def save_array(array: Any, file: Path) -> None:
    """Saves an array so that it can be read without pickles: texts too."""
    is_text = array.dtype.kind == "O"
    np.save(file, array.astype(str) if is_text else array, allow_pickle=False)


def _of_npy(content: bytes) -> Any:
    """The header says how large the array is, and must not lie: memory is taken by it."""
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


def _member(content: bytes, key: str) -> bytes:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names = [each.filename for each in archive.infolist()]
        wanted = f"{key}.npy" if f"{key}.npy" in names else names[0] if len(names) == 1 else ""
        if not wanted:
            known = ", ".join(name.removesuffix(".npy")[:40] for name in names[:5])
            raise ModelError(f"it has no array {key}; it has {known or 'none'}")
        if archive.getinfo(wanted).compress_type not in _COMPRESSIONS:
            raise ValueError("it is not compressed as NumPy does it")
        with archive.open(wanted) as member:
            body = member.read(MAX_ARRAY_BYTES + 1)
    if len(body) > MAX_ARRAY_BYTES:
        raise ModelError(_too_large(len(body)))
    return body


def _of_tensor(content: bytes) -> Any:
    tensor = onnx.TensorProto.FromString(content)
    if not tensor.data_type:
        raise ValueError("no TensorProto")
    if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError("its numbers are in another file")
    if math.prod(tensor.dims) > MAX_ARRAY_BYTES or min(tensor.dims, default=0) < 0:
        raise ValueError("its shape and its size do not fit together")
    array = onnx.numpy_helper.to_array(tensor)
    is_text = tensor.data_type == onnx.TensorProto.STRING
    return _decoded(array) if is_text else array


def _decoded(array: Any) -> Any:
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.asarray(texts, dtype=object).reshape(array.shape)


def _too_large(size: int) -> str:
    return f"it has {size >> 20} MiB; an input may have {MAX_ARRAY_BYTES >> 20}"
