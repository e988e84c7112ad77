"""Actors on the nodes of a cluster. Requests and replies are the bytes that a child process would
get.

Ray pickles its own arguments, between the driver and the nodes of one user's cluster; no byte of a
pull request or of the cache is ever unpickled.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import msgspec

from tunegate.config import TargetConfig
from tunegate.system.machine.device import ThisMachine
from tunegate.system.nvidia.session import gpus_of, prepare_devices
from tunegate.tune.device_slots import on_cpu
from tunegate.tune.protocol import Measure, Measured, Placement, Slot
from tunegate_cache.format.records import DeviceFingerprint


class RemoteReply(NamedTuple):
    """`reference` is the default schedule's output, if this request had to compute it."""

    measured: bytes
    reference: bytes


class Started(NamedTuple):
    """`node` is Ray's name of the machine, `device` the fingerprint of the measured device."""

    node: str
    device: bytes


class BuildingWorker:
    """A worker on a CPU of some node: it builds candidates, and measures them there if the target
    is a CPU."""

    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        os.environ.update(variables)
        self._worker = import_module(program)  # a compiler reads its variables when it is loaded
        self._directory = _directory()
        (self._place,) = on_cpu(1, self._directory, limit_seconds=0.0)  # the driver keeps the time

    def started(self) -> Started:
        device = ThisMachine("llvm").fingerprint()
        return Started(_node(), msgspec.msgpack.encode(device))

    def handle_request(self, request: bytes, reference: bytes) -> RemoteReply:
        asked = _local(request, reference, self._directory, self._place)
        return _reply_of(asked, self._worker.handle_request(asked))

    def library(self, request: bytes) -> bytes:
        """Returns the library built for another node to measure, or why it does not build; that
        node tells them apart."""
        library: bytes = self._worker.library_of(msgspec.msgpack.decode(request, type=Measure))
        return library


class MeasuringWorker:
    """A worker with its own GPU: it measures what was built elsewhere."""

    def __init__(self, program: str, variables: Mapping[str, str], target: bytes) -> None:
        os.environ.update(variables)
        self._worker = import_module(program)  # a compiler reads its variables when it is loaded
        self._directory = _directory()
        wanted = msgspec.msgpack.decode(target, type=TargetConfig)
        gpu = gpus_of(wanted)[0]
        self._place = Placement(slots=(Slot(claim=gpu.claim),), limit_seconds=0.0)
        self._kept = ExitStack()  # the clocks are free again when this process ends
        self._kept.enter_context(prepare_devices([gpu], wanted))

    def started(self) -> Started:
        device = ThisMachine("cuda").fingerprint()
        return Started(_node(), msgspec.msgpack.encode(device))

    def handle_request(self, request: bytes, reference: bytes, library: bytes) -> RemoteReply:
        asked = _local(request, reference, self._directory, self._place)
        return _reply_of(asked, self._worker.handle_with_library(library, asked))


def device_of(started: Started) -> DeviceFingerprint:
    return msgspec.msgpack.decode(started.device, type=DeviceFingerprint)


def _node() -> str:
    import ray  # noqa: PLC0415 -- this runs on a node of a cluster, where it is

    return str(ray.get_runtime_context().get_node_id())


def _directory() -> Path:
    """Returns this node's directory that everybody who measures on it uses."""
    directory = Path(tempfile.gettempdir()) / "tunegate-ray"
    directory.mkdir(exist_ok=True)
    return directory


def _local(request: bytes, reference: bytes, directory: Path, place: Placement) -> Measure:
    """Returns the request with this node's files instead of the driver's."""
    asked = msgspec.msgpack.decode(request, type=Measure)
    run = Path(asked.reference)
    file = directory / run.parent.name / run.name
    file.parent.mkdir(exist_ok=True)
    if reference and not file.exists():
        partial = file.with_name(f"{file.name}-{os.getpid()}")
        partial.write_bytes(reference)
        partial.rename(file)
    return msgspec.structs.replace(asked, reference=str(file), place=place)


def _reply_of(request: Measure, measured: Measured) -> RemoteReply:
    file = Path(request.reference)
    reference = file.read_bytes() if request.writes_reference and file.exists() else b""
    return RemoteReply(msgspec.msgpack.encode(measured), reference)
