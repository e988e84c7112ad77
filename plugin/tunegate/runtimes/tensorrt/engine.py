"""An engine of TensorRT, opened as it is shipped: all places on the device are bound once."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from cuda.bindings import runtime

from tunegate.artifacts.candidates import FLOAT32, LAUNCH, PRECISION
from tunegate.errors import EnvironmentUnfitError, UnsupportedModelError
from tunegate.runtimes.cuda_variants import GRAPH, TFLOAT32
from tunegate.runtimes.tensorrt.library import Log, tensorrt
from tunegate.runtimes.tensorrt.runtime import engine_refusal
from tunegate.system.output.artifact_file import ArtifactFile


class OpenEngine:
    """An engine in this process. The log outlives what was made with it."""

    def __init__(self, file: Path) -> None:
        self._log = Log()
        # Its runtime must outlive the engine.
        self._runtime = tensorrt.Runtime(self._log)
        engine = self._runtime.deserialize_cuda_engine(file.read_bytes())
        if engine is None:
            raise UnsupportedModelError(f"TensorRT {engine_refusal(self._log.errors)}")
        self.engine = engine
        self.context = engine.create_execution_context()
        self.stream = Stream()
        self.inputs: dict[str, DeviceArray] = {}
        self.outputs: dict[str, DeviceArray] = {}
        for each in range(engine.num_io_tensors):
            self._bind(engine.get_tensor_name(each))

    def begin(self) -> None:
        """Begins an inference. Raises EnvironmentUnfitError."""
        if not self.context.execute_async_v3(self.stream.handle):
            raise EnvironmentUnfitError(f"TensorRT {engine_refusal(self._log.errors)}")

    def _bind(self, name: str) -> None:
        shape = tuple(self.engine.get_tensor_shape(name))
        if any(size < 0 for size in shape):
            raise UnsupportedModelError(f"TensorRT knows no fixed size of {name}")
        array = DeviceArray(shape, tensorrt.nptype(self.engine.get_tensor_dtype(name)))
        is_input = self.engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT
        (self.inputs if is_input else self.outputs)[name] = array
        self.context.set_tensor_address(name, array.address)


class EngineModel:
    """A file with an engine, in this process. Outputs are in the order of the model's."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact
        self._without_graphs = ""

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        self.bound(feed)()
        return [output.download() for output in self._open.outputs.values()]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        for name, array in self._open.inputs.items():
            array.upload(feed[name])
        begin, wait = self._begin, self._open.stream.wait

        def inference() -> None:
            begin()
            wait()

        return inference

    def notes(self) -> Sequence[str]:
        without = f"without CUDA graphs, with them: {self._without_graphs}"
        return [without] if self._without_graphs else []

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        # Imported by the process that profiles, and by no other.

        opened = self._open
        for name, array in opened.inputs.items():
            array.upload(feed[name])
        return engine_layers_ms(opened, inferences)

    @cached_property
    def _open(self) -> OpenEngine:
        return OpenEngine(self._file)

    @cached_property
    def _begin(self) -> Callable[[], None]:
        """The first inference sets up what cannot be captured."""
        opened = self._open
        opened.begin()
        opened.stream.wait()
        if self._artifact.settings.get(LAUNCH) != GRAPH:
            return opened.begin
        try:
            return opened.stream.captured(opened.begin)
        except EnvironmentUnfitError as error:
            self._without_graphs = str(error)
            return opened.begin


# Memory and streams of the first GPU that this process sees, by the bindings of CUDA's runtime.
# All of it lives as long as the process, which measures one artifact.


class DeviceArray:
    """An array of the host with its place on the device."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.host = np.zeros(shape, dtype)
        self.address = int(_done(runtime.cudaMalloc(max(1, self.host.nbytes))))

    def upload(self, value: Any) -> None:
        self.host[...] = value
        to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        _done(runtime.cudaMemcpy(self.address, self.host.ctypes.data, self.host.nbytes, to_device))

    def download(self) -> Any:
        """Returns a copy of what is on the device."""
        to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        _done(runtime.cudaMemcpy(self.host.ctypes.data, self.address, self.host.nbytes, to_host))
        return self.host.copy()


class Stream:
    """An order in which the device does things."""

    def __init__(self) -> None:
        self._stream = _done(runtime.cudaStreamCreate())

    @property
    def handle(self) -> int:
        return int(self._stream)

    def wait(self) -> None:
        _done(runtime.cudaStreamSynchronize(self._stream))

    def captured(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Returns what begins all at once that `begin` begins one by one. Raises
        EnvironmentUnfitError where that cannot be captured."""
        mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        _done(runtime.cudaStreamBeginCapture(self._stream, mode))
        try:
            begin()
        finally:
            ended = runtime.cudaStreamEndCapture(self._stream)
        graph = _done(runtime.cudaGraphInstantiate(_done(ended), 0))

        def launch() -> None:
            _done(runtime.cudaGraphLaunch(graph, self._stream))

        return launch


def _done(result: tuple[Any, ...]) -> Any:
    """Returns what a call gives. Raises EnvironmentUnfitError where it failed."""
    code, *found = result
    if code != runtime.cudaError_t.cudaSuccess:
        _, said = runtime.cudaGetErrorString(code)
        raise EnvironmentUnfitError(f"CUDA says: {said.decode(errors='replace')}")
    return found[0] if found else None


# Times of an engine's layers, by TensorRT's own profiler.


class _Times(tensorrt.IProfiler):  # type: ignore[misc]  # it carries no types
    def __init__(self) -> None:
        tensorrt.IProfiler.__init__(self)
        self.milliseconds: dict[str, list[float]] = defaultdict(list)

    def report_layer_time(self, name: str, milliseconds: float) -> None:
        self.milliseconds[name].append(milliseconds)


def engine_layers_ms(opened: Any, inferences: int) -> dict[str, float]:
    """Milliseconds in one inference by the names of the user's nodes: the median, the first
    inference aside. Layers of one name are added up."""
    times = _Times()
    opened.context.profiler = times
    for _ in range(inferences + 1):
        opened.begin()
        opened.stream.wait()
    inspector = opened.engine.create_engine_inspector()
    told = inspector.get_engine_information(tensorrt.LayerInformationFormat.JSON)
    named = names_of_engine_layers(told)
    total: dict[str, float] = defaultdict(float)
    for layer, each in times.milliseconds.items():
        total[named.get(layer, layer)] += statistics.median(each[1:] or each)
    return dict(total)


# The user's names of the layers that TensorRT runs, from the engine's own description. It needs no
# TensorRT.

_ONNX_LAYER: Final = re.compile(r"\[ONNX Layer: ([^\]\x1e]+)\]")
_CHANGE: Final = re.compile(r"Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (.+)$")
_JOINED: Final = " + "


def names_of_engine_layers(told: str) -> dict[str, str]:
    """Returns what people call each layer of an engine's JSON: the first node among those that it
    was made of. A change of layout is called like the layer that it is for; one that nothing is
    known of keeps its own name."""
    layers = [each for each in msgspec.json.decode(told).get("Layers", []) if _is_known(each)]
    named = {each["Name"]: _first_node(each) for each in layers}
    return {name: found or _prepared(name, named) for name, found in named.items()}


def _is_known(layer: Any) -> bool:
    """Engines built without details list plain names."""
    return isinstance(layer, dict) and isinstance(layer.get("Name"), str)


def _first_node(layer: dict[str, Any]) -> str:
    found = _ONNX_LAYER.search(str(layer.get("Metadata", "")))
    return found[1].strip() if found else ""


def _prepared(name: str, named: dict[str, str]) -> str:
    change = _CHANGE.search(name)
    if change is None:
        return name.split(_JOINED, maxsplit=1)[0]
    return named.get(change[1]) or change[1].split(_JOINED)[0]


# An engine built from an ONNX file, for the first GPU that this process sees. Networks are
# strongly typed: an operator computes in the numbers that the file says, and in no others. What
# TensorRT may choose besides is TF32, which is told to it. No timing cache and no engine of
# anybody else is read: an engine is code.

_TIMED = 8
"""The number of timings of each kernel before one is chosen: two builds of a model differ less."""


def built_engine(model: Path, settings: Mapping[str, str]) -> bytes:
    """Builds an engine."""
    log = Log()
    try:
        builder = tensorrt.Builder(log)
    except TypeError as error:  # it found no device, or no driver
        raise _refused(log.errors or [str(error)]) from error
    typed = 1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(typed)
    parser = tensorrt.OnnxParser(network, log)
    if not parser.parse_from_file(str(model)):
        errors = [parser.get_error(each).desc() for each in range(parser.num_errors)]
        raise _refused(errors or log.errors)
    plan = builder.build_serialized_network(network, _config(builder, settings))
    if plan is None:
        raise _refused(log.errors)
    return bytes(plan)


def _config(builder: Any, settings: Mapping[str, str]) -> Any:
    config = builder.create_builder_config()
    if settings.get(PRECISION, FLOAT32) == TFLOAT32:
        config.set_flag(tensorrt.BuilderFlag.TF32)
    else:
        config.clear_flag(tensorrt.BuilderFlag.TF32)
    config.profiling_verbosity = tensorrt.ProfilingVerbosity.DETAILED
    config.avg_timing_iterations = _TIMED
    return config


def _refused(said: list[str]) -> UnsupportedModelError:
    return UnsupportedModelError(f"TensorRT {engine_refusal(said)}")
