"""Times of a model's operators under OpenVINO, by its own profiling."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate.runtimes.openvino.layer_names import ExecutedLayer, names_in, names_of_layers
from tunegate.runtimes.openvino.library import openvino

_ORIGINAL_NAMES = "originalLayersNames"


def layers_ms(model: Any, request: Any, file: Path, inferences: int) -> dict[str, float]:
    """Milliseconds in one inference by the names of the user's nodes: the median, the first
    inference aside. `model` was compiled to be profiled."""
    layers = _layers_of(model)
    named = names_of_layers(layers, names_in(file, openvino.Core().read_model))
    found: dict[str, list[float]] = defaultdict(list)
    request.infer(share_outputs=True)
    for _ in range(inferences):
        request.infer(share_outputs=True)
        for name, milliseconds in _one_inference(request, named).items():
            found[name].append(milliseconds)
    return {name: statistics.median(times) for name, times in found.items()}


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
    return min((str(each.get_node().get_friendly_name()) for each in readers), default="")


def _one_inference(request: Any, named: Mapping[str, str]) -> dict[str, float]:
    """Layers of one name are added up; what was fused into another did not run."""
    total: dict[str, float] = defaultdict(float)
    for layer in request.profiling_info:
        milliseconds = layer.real_time.total_seconds() * 1e3
        if milliseconds > 0:
            total[named.get(layer.node_name, layer.node_name)] += milliseconds
    return total
