"""How long the operators of a model take under OpenVINO, by its own profiling."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tunegate.runtimes.openvino.layer_names import names_in
from tunegate.runtimes.openvino.library import openvino

_ORIGINAL_NAMES = "originalLayersNames"


def layers_ms(model: Any, request: Any, file: Path, inferences: int) -> dict[str, float]:
    """Milliseconds in one inference by the names of the user's nodes: the median, the first
    inference aside. `model` was compiled to be profiled."""
    named = names_of_layers(_made_of(model), names_in(file, openvino.Core().read_model))
    found: dict[str, list[float]] = defaultdict(list)
    request.infer(share_outputs=True)
    for _ in range(inferences):
        request.infer(share_outputs=True)
        for name, milliseconds in _one_inference(request, named).items():
            found[name].append(milliseconds)
    return {name: statistics.median(times) for name, times in found.items()}


def _made_of(model: Any) -> dict[str, str]:
    operators = model.get_runtime_model().get_ordered_ops()
    return {
        each.get_friendly_name(): each.get_rt_info()[_ORIGINAL_NAMES].astype(str)
        for each in operators
        if _ORIGINAL_NAMES in each.get_rt_info()
    }


def names_of_layers(made_of: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
    """Returns what people call each layer: the first node of the model among those that it was
    made of, which does the work; its own name where it was made of none."""
    found = {}
    for layer, originals in made_of.items():
        names = (name for name in originals.split(",") if name in known)
        found[layer] = next(names, layer)
    return found


def _one_inference(request: Any, named: Mapping[str, str]) -> dict[str, float]:
    """Layers of one name are added up; what was fused into another did not run."""
    total: dict[str, float] = defaultdict(float)
    for layer in request.profiling_info:
        milliseconds = layer.real_time.total_seconds() * 1e3
        if milliseconds > 0:
            total[named.get(layer.node_name, layer.node_name)] += milliseconds
    return total
