"""What the user calls the layers of a model, from the file that OpenVINO loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import onnx

from tunegate.edges.models.deciding_values import nodes_of

LAYERS: Final = "tunegate_layers"
"""The place in a file of OpenVINO's own for the names of the ONNX model that it was made of."""


def onnx_names(proto: onnx.ModelProto) -> frozenset[str]:
    """Returns the names of all nodes and of what they give."""
    return frozenset(name for node in nodes_of(proto) for name in (node.name, *node.output) if name)


def names_in(file: Path, read: Any) -> frozenset[str]:
    """Returns the names of the user's model; `read` opens a file of OpenVINO's own."""
    if file.suffix == ".onnx":
        return onnx_names(onnx.load(file, load_external_data=False))
    told = read(file).get_rt_info([LAYERS]).astype(str)
    return frozenset(msgspec.json.decode(told, type=list[str]))
