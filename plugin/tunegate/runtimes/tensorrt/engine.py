"""A TensorRT engine, opened as it is shipped: all device buffers are bound once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tunegate.artifacts.candidates import LAUNCH
from tunegate.errors import EnvironmentUnfitError, UnsupportedModelError
from tunegate.runtimes.cuda_variants import GRAPH
from tunegate.runtimes.tensorrt.device_memory import DeviceArray, Stream
from tunegate.runtimes.tensorrt.library import Log, tensorrt
from tunegate.runtimes.tensorrt.runtime import engine_refusal
from tunegate.system.output.artifact_file import ArtifactFile


class OpenEngine:
    """An engine in this process. The log must outlive what was made with it."""

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
        return [without] if self._without_graphs else []

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        # Imported by the process that profiles, and by no other.
        from tunegate.runtimes.tensorrt.layer_profile import engine_layers_ms  # noqa: PLC0415

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
            return opened.stream.captured(opened.begin)
        except EnvironmentUnfitError as error:
            self._without_graphs = str(error)
            return opened.begin
