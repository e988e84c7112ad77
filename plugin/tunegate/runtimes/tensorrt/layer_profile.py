"""Times of an engine's layers, by TensorRT's own profiler."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from typing import Any, Final

import msgspec

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


# The user's names of the layers that TensorRT runs, from the engine's own description.

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
