"""A model with its shapes fixed, made ready for a compiler: optimized offline.

ONNX Runtime's basic optimizations fold constants and merge batch norms into convolutions; without
them TVM would tune a batch norm as a task of its own.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import onnx
from google.protobuf.message import EncodeError

from tunegate.errors import UnsupportedModelError
from tunegate.models.graph import STANDARD_DOMAINS
from tunegate.models.prepared import Compilable
from tunegate.models.reference.session import said, write_optimized
from tunegate.system.onnx_scan import is_external, tensors_in
from tunegate.system.processes.memory_limit import memory_problem


def compilable(
    proto: onnx.ModelProto, file: Path | None, into: Path, path: str, *, inputs: set[str]
) -> Compilable:
    """Makes a model of static shapes ready, called `path` in messages. `file` is where it is saved
    as it is; None: nowhere yet.

    Raises UnsupportedModelError for what ONNX Runtime refuses with static shapes.
    """
    fixed, optimized = file or into / "fixed.onnx", into / "optimized.onnx"
    try:
        into.mkdir(parents=True, exist_ok=True)
        if file is None:
            save(proto, fixed)
        write_optimized(fixed, optimized)
        _simplify(optimized, inputs=inputs)
    except Exception as error:
        # ONNX Runtime's exceptions have no common base class
        raise UnsupportedModelError(_refused(proto, path, error)) from error
    return Compilable(fixed, optimized)


def unsupported_operators(path: str, node: onnx.NodeProto) -> str:
    """The message for an operator that cannot be compiled."""
    where = f'node "{node.name}"' if node.name else f"the node that makes {node.output[0]}"
    return f"{path}: operator {node.op_type} ({where}) is not supported by the compiler."


def _refused(proto: onnx.ModelProto, path: str, error: Exception) -> str:
    problem = memory_problem(error)
    if problem:
        return f"{path}: {problem}."
    for node in proto.graph.node:
        if node.domain in STANDARD_DOMAINS and not onnx.defs.has(node.op_type):
            return unsupported_operators(path, node)
    return (
        f"{path}: it cannot be given static shapes, which compilers need: ONNX Runtime refuses it "
        f"with them ({said(error)})."
    )


def _simplify(optimized: Path, *, inputs: set[str]) -> None:
    """Rewrites in the file what the optimizer leaves that compilers take badly."""
    proto = onnx.load(optimized)
    unused = [value for value in proto.graph.input if value.name not in inputs]
    for value in unused:  # initializers that it lists as inputs; main would want them all
        proto.graph.input.remove(value)
    sums = [node for node in proto.graph.node if node.op_type == "Sum"]
    if sums:
        nodes = [new for node in proto.graph.node for new in _additions(node)]
        del proto.graph.node[:]
        proto.graph.node.extend(nodes)
    if unused or sums:
        save(proto, optimized)


def _additions(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """TVM makes of a Sum a stack and a reduction over it, which no layout change survives; a chain
    of Adds is the same number for number."""
    if node.op_type != "Sum" or node.domain not in STANDARD_DOMAINS:
        return [node]
    first, *others = node.input
    if not others:
        return [onnx.helper.make_node("Identity", [first], node.output, name=node.name)]
    partial = [f"{node.output[0]}/{i}" for i in range(1, len(others))] + [node.output[0]]
    return [
        onnx.helper.make_node("Add", [left, right], [out], name=f"{node.name}/{i}")
        for i, (left, right, out) in enumerate(
            zip([first, *partial], others, partial, strict=False), 1
        )
    ]


# Models in files of ours: one, and one more for the weights where that is too small.

PROTOBUF_LIMIT_BYTES = 2**31
_PAGE_BYTES = 4096
"""Files begin on a page in the file with the weights, as ONNX Runtime maps them."""


def save(proto: onnx.ModelProto, file: Path) -> None:
    """Saves a model in one file; what is too large for that gets one more for its weights."""
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


def save_beside(proto: onnx.ModelProto, data: Mapping[str, BinaryIO], file: Path) -> None:
    """Saves a model whose tensors lie in these data files, by their names in it, with one file
    beside it that has all of them: no number passes through the model."""
    weights, begins = _weights_of(file), dict[str, int]()
    with weights.open("wb") as into:
        for name, source in data.items():
            begins[name] = -(-into.tell() // _PAGE_BYTES) * _PAGE_BYTES
            into.seek(begins[name])
            _copy(source, into)
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


def copy_weights(weights: Path, into: Path) -> None:
    """Puts a file with weights, which nobody changes any more, into another directory."""
    try:
        os.link(weights, into / weights.name)
    except OSError:  # there already, or another file system
        shutil.copyfile(weights, into / weights.name)


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
