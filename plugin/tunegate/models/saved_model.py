"""Models in files of ours: one, and one more for the weights where that is too small."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx

PROTOBUF_LIMIT_BYTES = 2**31


def save(proto: onnx.ModelProto, file: Path) -> None:
    """Saves a model in one file; what is too large for that gets one more for its weights."""
    if _fits_one_file(proto):
        onnx.save(proto, file)
    else:
        onnx.save(proto, file, save_as_external_data=True, location=_weights_of(file).name)


def _fits_one_file(proto: onnx.ModelProto) -> bool:
    """Returns whether protobuf can write the model, and onnx's checker read it."""
    return int(proto.ByteSize()) < PROTOBUF_LIMIT_BYTES


def weights_of(file: Path) -> Path | None:
    """The file beside a saved model that has its weights, where it has one."""
    weights = _weights_of(file)
    return weights if weights.exists() else None


def file_digests(file: Path) -> dict[str, str]:
    """The sha-256 of a saved model and, where it has one, of the file with its weights."""
    digests = {}
    for saved in (file, weights_of(file)):
        if saved is not None and saved.exists():
            with saved.open("rb") as stream:
                digests[saved.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return digests


def _weights_of(file: Path) -> Path:
    return file.with_suffix(".data")


# The value of an input in a file of ours: an array, a sequence of them, or nothing at all.

SEQUENCE_SUFFIX = ".npz"
_ABSENT = "absent"
"""The only name in an archive of an optional value that is not there."""


def save_value(value: Any, stem: Path) -> Path:
    """Saves an array, a list of arrays or None, without pickles: texts too. The file is the stem
    with a suffix."""
    if value is None or isinstance(value, list):
        file = Path(f"{stem}{SEQUENCE_SUFFIX}")
        arrays = {_ABSENT: np.empty(0)} if value is None else dict(enumerate(map(_plain, value)))
        np.savez(file, allow_pickle=False, **{str(name): array for name, array in arrays.items()})
        return file
    file = Path(f"{stem}.npy")
    np.save(file, _plain(value), allow_pickle=False)
    return file


def load_value(file: Path, dtype: Any) -> Any:
    """The same again, in the type of the input."""
    if file.suffix != SEQUENCE_SUFFIX:
        return np.load(file, allow_pickle=False).astype(dtype, copy=False)
    with np.load(file, allow_pickle=False) as archive:
        if _ABSENT in archive:
            return None
        arrays = [archive[str(place)] for place in range(len(archive.files))]
    return [each.astype(dtype, copy=False) for each in arrays]


def _plain(array: Any) -> Any:
    return array.astype(str) if array.dtype.kind == "O" else array
