"""A model opened by OpenVINO, as it is shipped."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from tunegate.artifacts.candidates import FLOAT32, PRECISION
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.openvino.layer_names import ExecutedLayer, names_in, names_of_layers
from tunegate.runtimes.openvino.library import openvino
from tunegate.runtimes.openvino.runtime import HINTS
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor


class OpenVinoModel:
    """An ONNX file, loaded in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        request = bound_request(self._compiled_model, feed)
        request.infer(share_outputs=True)
        return [np.array(tensor.data) for tensor in request.output_tensors]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Returns a function that runs one inference; outputs stay where OpenVINO writes them."""
        request = bound_request(self._compiled_model, feed)
        return lambda: request.infer(share_outputs=True)

    def watched(self, feed: Mapping[str, Any]) -> WatchedRequest:
        settings = settings_of(self._artifact.settings, self._artifact.threads, is_profiled=True)
        model = compile_model(self._file, self._artifact.inputs, settings)
        return WatchedRequest(model, bound_request(model, feed), self._file)

    @cached_property
    def _compiled_model(self) -> Any:
        settings = settings_of(self._artifact.settings, self._artifact.threads)
        return compile_model(self._file, self._artifact.inputs, settings)


def bound_request(model: Any, feed: Mapping[str, Any]) -> Any:
    """Returns a request whose inputs are these arrays, copied once."""
    request = model.create_infer_request()
    for port in model.inputs:
        (name,) = port.get_names() & feed.keys()
        request.set_tensor(port, openvino.Tensor(np.array(feed[name], order="C")))
    return request


# Reads and compiles a model with OpenVINO, with nothing left to its defaults.

_DEVICE: Final = "CPU"
_HINT: Final = "INFERENCE_PRECISION_HINT"
_TELLING: Final = (
    (re.compile(r"No conversion rule found for operations: ([^\n]+)"), "has no {}"),
    (re.compile(r"Unsupported value_info type: ([^\n]+)"), "{} is not a tensor"),
    (re.compile(r"^-- (\S+) with a message", re.MULTILINE), "does not take {}"),
)
"""The lines that name the problem, in errors of many lines."""
_MAX_CHARACTERS: Final = 200


def settings_of(
    settings: Mapping[str, str], threads: int, *, is_profiled: bool = False
) -> dict[str, Any]:
    """Returns OpenVINO's settings. Its default precision is bfloat16 on processors that have it.
    The gate chooses the cores, so OpenVINO must not pin threads."""
    return {
        _HINT: HINTS.get(settings.get(PRECISION, FLOAT32), HINTS[FLOAT32]),
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "PERF_COUNT": is_profiled,
    }


def compile_model(
    model: Path, inputs: Sequence[ArtifactTensor], settings: Mapping[str, Any]
) -> Any:
    """Compiles the model for inputs of these shapes. Raises UnsupportedModelError if OpenVINO
    cannot take it, or would compute in another precision than told."""
    try:
        core = openvino.Core()
        graph = core.read_model(model)
        graph.reshape({each.name: list(each.shape) for each in inputs})
        compiled_model = core.compile_model(graph, _DEVICE, dict(settings))
    except RuntimeError as error:
        raise UnsupportedModelError(f"OpenVINO {refusal_of(error)}") from error
    precision = compiled_model.get_property(_HINT).to_string()
    if precision != settings[_HINT]:
        raise UnsupportedModelError(
            f"OpenVINO computes in {precision} in place of {settings[_HINT]} here"
        )
    return compiled_model


def refusal_of(error: Exception) -> str:
    """Returns the error's statement about the model, in one line."""
    text = str(error).strip()
    for pattern, template in _TELLING:
        match = pattern.search(text)
        if match:
            return template.format(match[1].strip())[:_MAX_CHARACTERS]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last_line = lines[-1] if lines else type(error).__name__
    return f"cannot take the model: {last_line}"[:_MAX_CHARACTERS]


# Times of a model's operators, by OpenVINO's own profiling.

_ORIGINAL_NAMES = "originalLayersNames"


class WatchedRequest:
    """A request of a model that was compiled for profiling."""

    def __init__(self, model: Any, request: Any, file: Path) -> None:
        self._request, self._times = request, list[dict[str, float]]()
        self._names = names_of_layers(_layers_of(model), names_in(file, openvino.Core().read_model))

    def infer(self) -> None:
        self._request.infer(share_outputs=True)
        self._times.append(_one_inference(self._request, self._names))

    def inferences_ms(self) -> list[dict[str, float]]:
        return self._times


def _layers_of(model: Any) -> dict[str, ExecutedLayer]:
    return {
        each.get_friendly_name(): ExecutedLayer(_originals(each), _before(each), _after(each))
        for each in model.get_runtime_model().get_ordered_ops()
    }


def _originals(layer: Any) -> tuple[str, ...]:
    info = layer.get_rt_info()
    return tuple(info[_ORIGINAL_NAMES].astype(str).split(",")) if _ORIGINAL_NAMES in info else ()


def _before(layer: Any) -> str:
    values = layer.input_values()
    return str(values[0].get_node().get_friendly_name()) if values else ""


def _after(layer: Any) -> str:
    readers = (to for value in layer.outputs() for to in value.get_target_inputs())
    return min((str(reader.get_node().get_friendly_name()) for reader in readers), default="")


def _one_inference(request: Any, names: Mapping[str, str]) -> dict[str, float]:
    """Returns one inference's times. Layers of one name are added up; a fused layer did not run by
    itself."""
    total: dict[str, float] = defaultdict(float)
    for layer in request.profiling_info:
        milliseconds = layer.real_time.total_seconds() * 1e3
        if milliseconds > 0:
            total[names.get(layer.node_name, layer.node_name)] += milliseconds
    return total
