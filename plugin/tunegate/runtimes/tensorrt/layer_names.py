"""The user's names of the layers that TensorRT runs, from the engine's own description.
It needs no TensorRT."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

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
