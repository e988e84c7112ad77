"""Times of an engine's layers, by TensorRT's own profiler."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import Any

from tunegate.runtimes.tensorrt.layer_names import names_of_engine_layers
from tunegate.runtimes.tensorrt.library import tensorrt


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
