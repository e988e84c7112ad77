"""A model opened by ONNX Runtime on a GPU as it is shipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tunegate.artifacts.candidates import LAUNCH
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.errors import TunegateError
from tunegate.runtimes.cuda_variants import GRAPH
from tunegate.runtimes.onnxruntime_cuda.device_binding import DeviceBinding
from tunegate.runtimes.onnxruntime_cuda.placement import placed_nodes, told_of_placement
from tunegate.runtimes.onnxruntime_cuda.provider import CUDA
from tunegate.runtimes.onnxruntime_cuda.session import opened_on_device


class CudaModel:
    """An ONNX file, in this process, on the first GPU that it sees."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact
        self._without_graphs = ""
        self._places: DeviceBinding | None = None

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        return self._bound_to(feed).run(feed)

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        return self._bound_to(feed).bound(feed)

    def notes(self) -> Sequence[str]:
        told = told_of_placement(placed_nodes(self._session), CUDA)
        without = f"without CUDA graphs, with them: {self._without_graphs}"
        return [*([told] if told else []), *([without] if self._without_graphs else [])]

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        """Returns the time of each operator in ms; each kernel is waited for, so the times are the
        device's, and no graph is captured."""
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        # Reads the graph with the `onnx` package, which would double the time to start.
        from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms  # noqa: PLC0415

        open_file = partial(
            opened_on_device, self._file, self._plain_settings, self._artifact.threads
        )
        return profiled_ms(self._file, feed, inferences, open_file)

    def _bound_to(self, feed: Mapping[str, Any]) -> DeviceBinding:
        if self._places is None:
            self._places = DeviceBinding(self._session, feed, "cuda")
        return self._places

    @property
    def _plain_settings(self) -> dict[str, str]:
        return {key: value for key, value in self._artifact.settings.items() if key != LAUNCH}

    @cached_property
    def _session(self) -> Any:
        """Opens it with CUDA graphs where they were asked for, and without where ONNX Runtime
        refuses: some operators are on the CPU then."""
        settings, threads = self._artifact.settings, self._artifact.threads
        try:
            return opened_on_device(self._file, settings, threads)
        except Exception as error:
            # its errors have no common base class
            if settings.get(LAUNCH) != GRAPH or isinstance(error, TunegateError):
                raise
            self._without_graphs = (str(error).strip().splitlines() or [""])[-1][:200]
            return opened_on_device(self._file, self._plain_settings, threads)
