"""The user's names of the layers that OpenVINO runs, from the file that it loads.
It needs no OpenVINO."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import onnx

from tunegate.models.deciding_values import nodes_of

LAYERS: Final = "tunegate_layers"
"""The place in a file of OpenVINO's own for the names of the ONNX model that it was made of."""
_MAX_STEPS = 8


class ExecutedLayer(NamedTuple):
    """A layer that OpenVINO runs: the names of the nodes that it was made of, none for a change of
    layout or type, and the layers that give it its value and take it."""

    originals: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


def onnx_names(proto: onnx.ModelProto) -> frozenset[str]:
    """Returns the names of all nodes and of what they give."""
    return frozenset(name for node in nodes_of(proto) for name in (node.name, *node.output) if name)


def names_in(file: Path, read: Any) -> frozenset[str]:
    """Returns the names of the user's model; `read` opens a file of OpenVINO's own."""
    if file.suffix == ".onnx":
        return onnx_names(onnx.load(file, load_external_data=False))
    told = read(file).get_rt_info([LAYERS]).astype(str)
    return frozenset(msgspec.json.decode(told, type=list[str]))


def names_of_layers(layers: Mapping[str, ExecutedLayer], known: Collection[str]) -> dict[str, str]:
    """Returns what people call each layer: the first node of the model among those that it was
    made of, which does the work. One that was made of none is called like the layer whose value it
    changes, else like that which it prepares one for; by its own name where neither is known."""
    named = {name: _known(layer, known) for name, layer in layers.items()}
    return {
        name: named[name] or _walked(name, layers, named, "before", "after") or name
        for name in layers
    }


def _known(layer: ExecutedLayer, known: Collection[str]) -> str:
    return next((name for name in layer.originals if name in known), "")


def _walked(
    name: str, layers: Mapping[str, ExecutedLayer], named: Mapping[str, str], *directions: str
) -> str:
    """The first name on the way, in the first direction that has one."""
    for direction in directions:
        at = name
        for _ in range(_MAX_STEPS):
            at = getattr(layers[at], direction) if at in layers else ""
            if found := named.get(at):
                return found
    return ""
