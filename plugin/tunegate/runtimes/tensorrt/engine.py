"""Opens, runs and builds engines of TensorRT, and times their layers. TensorRT is imported here and
nowhere else."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tensorrt

from tunegate.artifacts.candidates import FLOAT32, GRAPH, LAUNCH, PRECISION, TFLOAT32
from tunegate.errors import EnvironmentUnfitError, UnsupportedModelError
from tunegate.runtimes.tensorrt.device_memory import DeviceArray, Stream
from tunegate.runtimes.tensorrt.runtime import engine_refusal, names_of_engine_layers
from tunegate.system.nvidia.gpus import visible_gpus, why_a_library_wins
from tunegate.system.output.artifact_file import ArtifactFile


class OpenEngine:
    """An engine in this process, with its buffers. The log must outlive everything made with it."""

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
        """Starts an inference. Raises EnvironmentUnfitError."""
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
    """An engine file, loaded in this process. Outputs are in the model's order."""

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
        faster = why_a_library_wins(self._artifact.settings.get(PRECISION, ""), visible_gpus())
        return [each for each in (without if self._without_graphs else "", faster) if each]

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        opened = self._open
        for name, array in opened.inputs.items():
            array.upload(feed[name])
        return engine_layers_ms(opened, inferences)

    @cached_property
    def _open(self) -> OpenEngine:
        return OpenEngine(self._file)

    @cached_property
    def _begin(self) -> Callable[[], None]:
        """Runs a first inference, which sets up what cannot be captured, and returns a function
        that starts one."""
        opened = self._open
        opened.begin()
        opened.stream.wait()
        if self._artifact.settings.get(LAUNCH) != GRAPH:
            return opened.begin
        try:
            return opened.stream.capture(opened.begin)
        except EnvironmentUnfitError as error:
            self._without_graphs = str(error)
            return opened.begin


class Log(tensorrt.ILogger):  # type: ignore[misc]  # it carries no types
    """Keeps TensorRT's error messages. It must outlive everything made with it."""

    def __init__(self) -> None:
        tensorrt.ILogger.__init__(self)
        self.errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        if severity in {tensorrt.ILogger.Severity.ERROR, tensorrt.ILogger.Severity.INTERNAL_ERROR}:
            self.errors.append(message)


# Builds an engine from an ONNX file, for the first visible GPU. Networks are strongly typed: each
# operator computes in the precision of the file, and no other. TF32 is the only freedom, and a
# setting decides it. No timing cache and no foreign engine is read: an engine is code.

_TIMED = 8
"""Timings per kernel before one is chosen: with more, two builds of a model differ less."""


def built_engine(model: Path, settings: Mapping[str, str]) -> bytes:
    """Builds an engine and returns its bytes."""
    log = Log()
    try:
        builder = tensorrt.Builder(log)
    except TypeError as error:  # no device, or no driver
        raise _unsupported_error(log.errors or [str(error)]) from error
    typed = 1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(typed)
    parser = tensorrt.OnnxParser(network, log)
    if not parser.parse_from_file(str(model)):
        errors = [parser.get_error(each).desc() for each in range(parser.num_errors)]
        raise _unsupported_error(errors or log.errors)
    plan = builder.build_serialized_network(network, _config(builder, settings))
    if plan is None:
        raise _unsupported_error(log.errors)
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


def _unsupported_error(errors: list[str]) -> UnsupportedModelError:
    return UnsupportedModelError(f"TensorRT {engine_refusal(errors)}")


# Times of an engine's layers, by TensorRT's own profiler.


class _Times(tensorrt.IProfiler):  # type: ignore[misc]  # it carries no types
    def __init__(self) -> None:
        tensorrt.IProfiler.__init__(self)
        self.milliseconds: dict[str, list[float]] = defaultdict(list)

    def report_layer_time(self, name: str, milliseconds: float) -> None:
        self.milliseconds[name].append(milliseconds)


def engine_layers_ms(opened: Any, inferences: int) -> dict[str, float]:
    """Returns the median milliseconds per inference by the user's names of layers, the first
    inference aside. Layers of one name are added up."""
    times = _Times()
    opened.context.profiler = times
    for _ in range(inferences + 1):
        opened.begin()
        opened.stream.wait()
    inspector = opened.engine.create_engine_inspector()
    information = inspector.get_engine_information(tensorrt.LayerInformationFormat.JSON)
    names = names_of_engine_layers(information)
    total: dict[str, float] = defaultdict(float)
    for layer, each in times.milliseconds.items():
        total[names.get(layer, layer)] += statistics.median(each[1:] or each)
    return dict(total)
