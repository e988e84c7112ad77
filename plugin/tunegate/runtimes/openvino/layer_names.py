"""The user's names of the layers that OpenVINO runs, from the file that it loads. Needs no
OpenVINO."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import onnx

from tunegate.system.onnx_scan import nodes_of

LAYERS: Final = "tunegate_layers"
"""The key of the ONNX model's names in a file of OpenVINO's own format."""
_MAX_STEPS = 8


class ExecutedLayer(NamedTuple):
    """A layer that OpenVINO runs: the names of its original nodes, none for a change of layout or
    type, and the layers before and after it."""

    originals: tuple[str, ...] = ()
    before: str = ""
    after: str = ""


def onnx_names(proto: onnx.ModelProto) -> frozenset[str]:
    """Returns the names of all nodes and of their outputs."""
    return frozenset(name for node in nodes_of(proto) for name in (node.name, *node.output) if name)


def names_in(file: Path, read: Any) -> frozenset[str]:
    """Returns the names of the user's model; `read` opens a file of OpenVINO's own format."""
    if file.suffix == ".onnx":
        return onnx_names(onnx.load(file, load_external_data=False))
    text = read(file).get_rt_info([LAYERS]).astype(str)
    return frozenset(msgspec.json.decode(text, type=list[str]))


def names_of_layers(
    layers: Mapping[str, ExecutedLayer], known_names: Collection[str]
) -> dict[str, str]:
    """Returns the user's name of each layer: that of its first original node, which does the work.
    A layer without one, which changes a layout or type, takes the name of the layer before it, else
    of the layer after it, else keeps its own."""
    originals = {name: _first_original(layer, known_names) for name, layer in layers.items()}
    return {
        name: originals[name] or _nearest_name(name, layers, originals, "before", "after") or name
        for name in layers
    }


def _first_original(layer: ExecutedLayer, known_names: Collection[str]) -> str:
    return next((name for name in layer.originals if name in known_names), "")


def _nearest_name(
    name: str, layers: Mapping[str, ExecutedLayer], names: Mapping[str, str], *directions: str
) -> str:
    """Returns the first name along the layers, in the first direction that has one; else ''."""
    for direction in directions:
        at = name
        for _ in range(_MAX_STEPS):
            at = getattr(layers[at], direction) if at in layers else ""
            if own_name := names.get(at):
                return own_name
    return ""
