"""Models with operators of onnxruntime-extensions."""

import hashlib
import importlib.util
import itertools
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

_DOMAIN = "ai.onnx.contrib"
PACKAGE = "onnxruntime_extensions"


def custom_model(count: int, size: int = 48) -> onnx.ModelProto:
    """A matrix that is inverted so many times."""
    names = ["x", *(f"x{n}" for n in range(1, count)), "y"]
    nodes = [
        make_node("Inverse", [old], [new], domain=_DOMAIN) for old, new in itertools.pairwise(names)
    ]
    x, y = (make_tensor_value_info(name, TensorProto.FLOAT, [size, size]) for name in "xy")
    versions = [make_opsetid("", 17), make_opsetid(_DOMAIN, 1)]
    graph = make_graph(nodes, "custom", [x], [y])
    return make_model(graph, opset_imports=versions, ir_version=9)


def named_library() -> str:
    """Returns the lines of a configuration that allow the package's library."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        pytest.skip("onnxruntime-extensions has no wheel for this Python or processor")
    (library,) = Path(found.origin).parent.glob("*.so")
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    return f"custom-operators:\n  - library: {PACKAGE}\n    sha256: {digest}\n"
