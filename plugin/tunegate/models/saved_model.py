"""Saves models in files of ours: one, and a second for weights that do not fit."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import onnx
from google.protobuf.message import EncodeError

from tunegate.system.onnx_scan import is_external, tensors_in

PROTOBUF_LIMIT_BYTES = 2**31
_PAGE_BYTES = 4096
"""The page size: ONNX Runtime maps weights, so each begins on a page."""


def save(proto: onnx.ModelProto, file: Path) -> None:
    """Saves a model in one file; if it is too large, its weights go to a second."""
    if _fits_one_file(proto):
        onnx.save(proto, file)
    else:
        onnx.save(proto, file, save_as_external_data=True, location=_weights_of(file).name)


def _fits_one_file(proto: onnx.ModelProto) -> bool:
    """Returns whether protobuf can write the model, and onnx's checker read it."""
    try:
        return int(proto.ByteSize()) < PROTOBUF_LIMIT_BYTES
    except EncodeError:  # it does not even count more
        return False


def save_beside(
    proto: onnx.ModelProto, names: Iterable[str], opened: Callable[[str], BinaryIO], file: Path
) -> None:
    """Saves a model whose tensors are in data files of these names, with one file beside it that
    has them all, and of links to one file only one. No number passes through the model."""
    weights, begins, copied = _weights_of(file), dict[str, int](), dict[tuple[int, int], int]()
    with weights.open("wb") as into:
        for name in names:
            with opened(name) as source:
                status = os.fstat(source.fileno())
                which = (status.st_dev, status.st_ino)
                if which not in copied:
                    copied[which] = -(-into.tell() // _PAGE_BYTES) * _PAGE_BYTES
                    into.seek(copied[which])
                    _copy(source, into)
            begins[name] = copied[which]
    for tensor in filter(is_external, tensors_in(proto)):
        entries = {entry.key: entry for entry in tensor.external_data}
        offset = entries.get("offset") or tensor.external_data.add(key="offset")
        offset.value = str(begins[entries["location"].value] + int(offset.value or 0))
        entries["location"].value = weights.name
    onnx.save(proto, file)


def _copy(source: BinaryIO, into: BinaryIO) -> None:
    """Copies a file; a hole stays one, and costs neither time nor place on the disk."""
    begin, size_bytes = into.tell(), os.fstat(source.fileno()).st_size
    position = 0
    while position < size_bytes:
        try:
            position = os.lseek(source.fileno(), position, os.SEEK_DATA)
            hole = os.lseek(source.fileno(), position, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole is left
        into.seek(begin + position)
        into.flush()
        while position < hole:
            position += os.sendfile(into.fileno(), source.fileno(), position, hole - position)
        into.seek(begin + position)
    into.truncate(begin + size_bytes)
    into.seek(begin + size_bytes)


def weights_of(file: Path) -> Path | None:
    """Returns the weights file beside a saved model, None if it has none."""
    weights = _weights_of(file)
    return weights if weights.exists() else None


def file_digests(file: Path) -> dict[str, str]:
    """Returns the SHA-256 of a saved model and of its weights file, if it has one."""
    digests = {}
    for part in (file, weights_of(file)):
        if part is not None and part.exists():
            with part.open("rb") as stream:
                digests[part.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _weights_of(file: Path) -> Path:
    return file.with_suffix(".data")


# The value of an input in a file of ours: an array, a sequence of them, or nothing at all.
