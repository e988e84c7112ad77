"""A model opened by OpenVINO as it is shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.runtimes.openvino.compiled import compiled, settings_of
from tunegate.runtimes.openvino.library import openvino


class OpenVinoModel:
    """An ONNX file, in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        request = bound_request(self._compiled, feed)
        request.infer(share_outputs=True)
        return [np.array(tensor.data) for tensor in request.output_tensors]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Outputs stay where OpenVINO writes them."""
        request = bound_request(self._compiled, feed)
        return lambda: request.infer(share_outputs=True)

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        # Reads the graph with the `onnx` package, which takes time to import.
        from tunegate.runtimes.openvino.operator_profile import layers_ms  # noqa: PLC0415

        told = settings_of(self._artifact.settings, self._artifact.threads, is_profiled=True)
        profiled = compiled(self._file, self._artifact.inputs, told)
        return layers_ms(profiled, bound_request(profiled, feed), self._file, inferences)

    @cached_property
    def _compiled(self) -> Any:
        told = settings_of(self._artifact.settings, self._artifact.threads)
        return compiled(self._file, self._artifact.inputs, told)


def bound_request(model: Any, feed: Mapping[str, Any]) -> Any:
    """Returns a request whose inputs are these arrays, copied once."""
    request = model.create_infer_request()
    for port in model.inputs:
        (name,) = port.get_names() & feed.keys()
        request.set_tensor(port, openvino.Tensor(np.array(feed[name], order="C")))
    return request
