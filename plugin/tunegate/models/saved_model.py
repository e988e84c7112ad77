"""Models in files of ours: one, and one more for the weights where that is too small."""

from __future__ import annotations

import hashlib
from pathlib import Path

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
